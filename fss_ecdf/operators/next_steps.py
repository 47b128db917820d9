"""What to do next with a campaign, in every state that its two servers can be in."""

from collections.abc import Callable
from typing import Any

Status = dict[str, Any]
TOO_FEW = (
    "too few uploads passed the check, so nothing of this campaign is ever published; its challenge is known now, so "
    "nothing can be added to it: create a new campaign, to which parties send their values with new keys"
)
Command = Callable[[str], str]  # what to type for one of: seal, cancel-seal, unfreeze, discard-excluded, delete


def typed(campaign_id: str) -> Command:
    """What is typed."""
    return lambda name: f"fss-server campaign {name} {campaign_id}"


def next_step(status: Status, command: Command) -> str:
    """From one server's status, which has in `peer` what the other server says or why it says nothing."""
    here, there = str(status["state"]), status.get("peer", {})
    if "on_hold" in status:
        return "this server's database is older than what it did; on its machine: fss-server recovery show"
    if "on_hold" in there or "peer_rolled_back" in status:
        return "the other server's database is older than what it did; its operator has to decide (recovery show)"
    if "state" not in there:
        return _without_peer(there, command)
    if "wave" in status and {here, str(there["state"])} != {"sealed"}:
        return _of_waves(status, there, command)
    states = {here, str(there["state"])}
    if states == {"sealed"}:
        return _sealed(status, there, command)
    if states <= {"checking", "sealed"}:
        return "nothing to do: both servers are checking the keys of the uploads; ask for the status again"
    if states & {"checking", "sealed"}:
        return (
            f"the set of uploads is {here} here and {there['state']} at the other server; to complete it: "
            + command("seal")
        )
    if "frozen" in states:
        return (
            f"uploads are {_shown(here)} here and {_shown(there['state'])} at the other server, after a sealing that "
            f"did not come to its end; go on with it: {command('seal')}, or undo it: {command('unfreeze')}"
        )
    return _open(status, there, command)


def _shown(state: object) -> str:
    return "frozen" if state == "frozen" else "still taken"


def _without_peer(there: Status, command: Command) -> str:
    if there.get("problem") == "unknown-campaign":
        return "the other server does not have the campaign: its operator must create or accept it"
    if there.get("problem") == "campaign-deleted":
        return "the campaign was deleted at the other server; delete it here, too: " + command("delete")
    if there.get("problem") == "digest-mismatch":
        return "the two servers have different campaigns under this id: delete one and create it from the same file"
    return "the other server cannot be asked now; see to it with its operator, then ask for the status again"


def _of_waves(status: Status, there: Status, command: Command) -> str:
    """Uploads go on whatever becomes of a wave that closes."""
    waiting = [wave["number"] for wave in status["waves"] if wave["state"] == "frozen"]
    if waiting or status["wave"] != there.get("wave"):
        which = waiting[0] if waiting else min(int(status["wave"]), int(there.get("wave", 1)))
        return f"wave {which} is closing; if it stays so: {command('seal')} --wave {which}"
    if status.get("closes_itself"):
        return f"nothing to do: wave {status['wave']} closes by itself"
    return f"to close wave {status['wave']}, by both operators: {command('seal')} --wave {status['wave']}"


def _open(status: Status, there: Status, command: Command) -> str:
    few = min(int(status["uploads"]), int(there.get("uploads", 0))) < int(status["min_uploads"])
    itself = status.get("seal") == "at-closing"
    if status.get("closed") and few:
        return (
            f"uploads are closed and fewer than the {status['min_uploads']} that were promised; nothing can be "
            f"published: {command('delete')}"
        )
    if itself:
        return f"nothing to do: both servers seal by themselves at {status['closes']}"
    if few:
        return f"wait for uploads: at least {status['min_uploads']} must reach both servers"
    if status["agreed"] and not there.get("agreed"):
        return "you agreed to sealing; the other operator must do the same. To take your word back: " + command(
            "cancel-seal"
        )
    if there.get("agreed") and not status["agreed"]:
        return f"the other operator wants it sealed; if you agree: {command('seal')}"
    return f"when no more uploads are expected: {command('seal')}, by both operators"


def _sealed(status: Status, there: Status, command: Command) -> str:
    if status.get("too_few") or there.get("too_few"):
        return f"{TOO_FEW}. To erase this one: {command('delete')}"
    phases = [str(one.get("phase", "")) for one in (status, there)]
    if "failed" in phases:
        which = "this server" if phases[0] == "failed" else "the other server"
        why = str((status if phases[0] == "failed" else there).get("problem", "its log says why"))
        return f"{which} could not evaluate the curve ({why}); it tries again by itself"
    if phases != ["ready", "ready"]:
        return "nothing to do: the curve is being evaluated; ask for the status again"
    if status.get("kept"):
        return f"analysts can ask. What was left out is kept; to erase it: {command('discard-excluded')}"
    return "analysts can ask. When it is not needed any more: " + command("delete")
