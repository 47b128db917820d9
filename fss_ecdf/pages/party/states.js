// The states of the party's page and all transitions between them. The page changes its state through `nextState` only,
// and what is shown is a function of the state (screens.js): no element is shown or hidden by anything else.

export const FIRST_STATE = "loading";

/** @type {Record<string, Record<string, string>>} */
export const TRANSITIONS = {
  // Opening the storage, starting the worker, asking both servers.
  loading: {
    opened: "study",
    shut: "closed",
    finished: "done",
    interrupted: "sending",
    halted: "failed",
    refused: "failed",
  },
  // The campaign takes no values now.
  closed: { retry: "loading", resume: "sending", withdraw: "withdrawing", invited: "loading" },
  // What is asked, by whom, and what happens to the value.
  study: { begin: "enter", recall: "loading", invited: "loading" },
  // The value, or the file and its columns. `noted`: an error or a file that was read.
  enter: { noted: "enter", placed: "review", back: "study", invited: "loading" },
  // What would be sent. Every edit leaves this state, so that what is sent is what was shown.
  review: { lacked: "review", edit: "enter", send: "sending", finished: "done", refused: "failed", invited: "loading" },
  sending: { stored: "done", doubted: "earlier", refused: "failed" },
  // Another upload from this device is unfinished: was it the same person's?
  earlier: { others: "sending", mine: "withdrawing", invited: "loading" },
  failed: {
    retry: "loading",
    resume: "sending",
    finished: "done",
    edit: "enter",
    withdraw: "withdrawing",
    invited: "loading",
  },
  // Both servers have stored everything, or have erased it.
  done: {
    withdraw: "withdrawing",
    another: "loading",
    forgot: "loading",
    again: "enter",
    learnt: "done",
    invited: "loading",
  },
  // Asking whether to withdraw; then, confirmed, withdrawing.
  withdrawing: {
    confirm: "withdrawing",
    keep: "done",
    leave: "failed",
    abandon: "closed",
    erased: "done",
    cleared: "sending",
    refused: "failed",
  },
};

/**
 * @param {string} state
 * @param {string} event
 * @returns {string} the state to which the event leads
 */
export function nextState(state, event) {
  const found = TRANSITIONS[state]?.[event];
  if (!found) throw new Error(`there is no transition ${event} from ${state}`);
  return found;
}

/** Whether the event is possible in this state.
 * @param {string} state
 * @param {string} event
 */
export const isPossible = (state, event) => event in TRANSITIONS[state];
