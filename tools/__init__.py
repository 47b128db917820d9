"""What those who keep this repository run: releases, updates, the documentation's site. Not part of the package."""
