"""What to do next with a campaign, in every state that its two servers can be in."""

from collections.abc import Callable

from fss_ecdf.campaign.status import Status, StatusProblem

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
    here, there = status.state, status.peer
    if status.on_hold is not None:
        return "this server's database is older than what it did; on its machine: fss-server recovery show"
    if status.peer_rolled_back is not None or (isinstance(there, Status) and there.on_hold is not None):
        return "the other server's database is older than what it did; its operator has to decide (recovery show)"
    if not isinstance(there, Status):
        return _without_peer(there, command)
    states = {here, there.state}
    if status.planned_waves is not None and states != {"sealed"}:
        return _of_waves(status, there, command)
    if states == {"sealed"}:
        return _sealed(status, there, command)
    if states <= {"checking", "sealed"}:
        return "nothing to do: both servers are checking the keys of the uploads; ask for the status again"
    if states & {"checking", "sealed"}:
        return f"the set of uploads is {here} here and {there.state} at the other server; to complete it: " + command(
            "seal"
        )
    if "frozen" in states:
        return (
            f"uploads are {_shown(here)} here and {_shown(there.state)} at the other server, after a sealing that "
            f"did not come to its end; go on with it: {command('seal')}, or undo it: {command('unfreeze')}"
        )
    return _open(status, there, command)


def _shown(state: object) -> str:
    return "frozen" if state == "frozen" else "still taken"


def _without_peer(there: StatusProblem | None, command: Command) -> str:
    problem = None if there is None else there.problem
    if problem == "unknown-campaign":
        return "the other server does not have the campaign: its operator must create or accept it"
    if problem == "campaign-deleted":
        return "the campaign was deleted at the other server; delete it here, too: " + command("delete")
    if problem == "digest-mismatch":
        return "the two servers have different campaigns under this id: delete one and create it from the same file"
    return "the other server cannot be asked now; see to it with its operator, then ask for the status again"


def _of_waves(status: Status, there: Status, command: Command) -> str:
    """Uploads go on whatever becomes of a wave that closes."""
    for wave in status.waves:
        other = there.of_wave(wave.number)
        if wave.abandon_agreed or (other is not None and other.abandon_agreed):
            who = "you" if wave.abandon_agreed else "the other operator"
            both = f"{command('abandon-wave')} --wave {wave.number}"
            return f"{who} agreed to abandon wave {wave.number}; both operators must: {both}"
        if other is not None and wave.state == "checking" and other.state in ("open", "frozen"):
            lost = f"if that server has lost uploads: {command('abandon-wave')} --wave {wave.number}"
            return f"wave {wave.number} is {wave.state} here and {other.state} at the other server; {lost}"
    waiting = [wave.number for wave in status.waves if wave.state == "frozen"]
    if waiting or status.wave != there.wave:
        which = waiting[0] if waiting else min(status.wave, there.wave)
        return f"wave {which} is closing; if it stays so: {command('seal')} --wave {which}"
    if status.closes_itself:
        return f"nothing to do: wave {status.wave} closes by itself"
    return f"to close wave {status.wave}, by both operators: {command('seal')} --wave {status.wave}"


def _open(status: Status, there: Status, command: Command) -> str:
    few = min(status.uploads, there.uploads) < status.min_uploads
    if status.closed and few:
        return (
            f"uploads are closed and fewer than the {status.min_uploads} that were promised; nothing can be "
            f"published: {command('delete')}"
        )
    if status.closes_itself:
        return f"nothing to do: both servers seal by themselves at {status.closes}"
    if few:
        return f"wait for uploads: at least {status.min_uploads} must reach both servers"
    if status.operator_agreed and not there.operator_agreed:
        return "you agreed to seal; the other operator must do the same. To withdraw your agreement: " + command(
            "cancel-seal"
        )
    if there.operator_agreed and not status.operator_agreed:
        return f"the other operator wants it sealed; if you agree: {command('seal')}"
    return f"when no more uploads are expected: {command('seal')}, by both operators"


def _sealed(status: Status, there: Status, command: Command) -> str:
    if status.too_few or there.too_few:
        return f"{TOO_FEW}. To erase this one: {command('delete')}"
    phases = [status.phase, there.phase]
    if "failed" in phases:
        which = "this server" if phases[0] == "failed" else "the other server"
        why = (status if phases[0] == "failed" else there).problem or "its log says why"
        return f"{which} could not evaluate the curve ({why}); it tries again by itself"
    if phases != ["ready", "ready"]:
        return "nothing to do: the curve is being evaluated; ask for the status again"
    if status.excluded_stored:
        return f"analysts can ask. Excluded uploads are kept; to erase them: {command('discard-excluded')}"
    return "analysts can ask. When it is not needed any more: " + command("delete")
