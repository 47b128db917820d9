"""What all roles share: campaigns, network, pages, the operators' commands."""
