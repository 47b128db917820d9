// What is shown in each state of the party's page: a function of the page's state and nothing else.

import { elementOf } from "../elements.js";
import { entering } from "./entering.js";
import { actions, button, definitions, field, folded, foreign, notice, paragraph, piece } from "./parts.js";
import { reviewing } from "./reviewing.js";
import { LANGUAGES } from "./texts.js";
import { hasText } from "./saying.js";
/** @import { Page } from "./page.js" */

/** @typedef {{ head: string, body: Node[], focus?: string }} Screen `focus` is the id of what gets the focus */

/** @type {Record<string, number>} */
const STEPS = { study: 1, enter: 2, review: 3 };

const FATAL = ["badCampaign", "unknownScheme", "unknownKem", "noEncryption", "insecure", "swapped", "otherCampaign"];

/** @type {Record<string, (page: Page) => Screen>} */
const SCREENS = {
  loading: (page) => ({
    head: page.say("loadingHead"),
    body: [paragraph(page.say(page.data.slow ? "slowServer" : "checking"), { role: "status" })],
  }),

  /** @param {Page} page */
  closed(page) {
    const { why, time, sealed } = page.data,
      { upload } = page;
    const when = time && new Intl.DateTimeFormat(page.language, { dateStyle: "long", timeStyle: "short" }).format(time);
    const out = upload.isOut && !sealed;
    return {
      head: page.say("closedHead"),
      body: [
        notice("warn", paragraph(page.say(why, { time: when }))),
        ...(out ? [paragraph(page.say("closedOut"))] : []),
        ...(upload.isOut ? [] : [paragraph(page.say("closedNothing"))]),
        actions(
          out && upload.pending && button("resume", page.say("resume"), () => page.send("resume"), "primary"),
          out && button("withdraw", page.say("withdraw"), () => page.askWithdraw()),
          button("retry", page.say("retry"), () => page.retry()),
        ),
      ],
    };
  },

  /** @param {Page} page */
  study(page) {
    const { campaign } = page;
    const promises = ["promiseSecret", "promiseTwo", "promiseBack"].map((key) => piece("li", {}, page.say(key)));
    return {
      head: page.say("studyHead"),
      body: [
        foreign("p", campaign.question, { id: "question" }),
        ...people(page),
        piece("ul", { class: "promises" }, ...promises),
        ...(page.kept.pending && !page.token ? [notice("warn", paragraph(page.say("interruptedBefore")))] : []),
        actions(
          button("begin", page.say("begin"), () => page.begin("one"), "primary"),
          button("begin-file", page.say("beginFile"), () => page.begin("file"), "link"),
        ),
        details(page),
        ...before(page),
      ],
    };
  },

  enter: entering,
  review: reviewing,

  /** @param {Page} page */
  sending(page) {
    const { count, stored, resumed } = page.data;
    return {
      head: page.say("sendingHead"),
      body: [
        ...(resumed ? [paragraph(page.say("resumed"))] : []),
        piece("progress", { id: "bar", max: "1", value: String(stored / count), "aria-labelledby": "screen-head" }),
        paragraph(page.say("progressText", { done: stored, count }), { id: "progress-text", role: "status" }),
      ],
    };
  },

  /** @param {Page} page */
  earlier: (page) => ({
    head: page.say("earlierHead"),
    body: [
      notice("warn", paragraph(page.say("earlierText"), { id: "earlier-text" })),
      actions(
        button("mine", page.say("earlierMine"), () => page.withdrawEarlier(), "primary"),
        button("others", page.say("earlierOthers"), () => page.shareDevice()),
      ),
    ],
  }),

  /** @param {Page} page */
  failed(page) {
    const { error, after, halted, retyped } = page.data,
      { upload } = page;
    const own = error && hasText(error.code) && error.code !== error.key;
    const fatal = error && FATAL.includes(error.key);
    const sealed = error?.code === "campaign-sealed";
    const out = upload?.isOut && !sealed && !retyped,
      again = upload && !out && page.placed && !sealed;
    const typed = { token: "" };
    const stored = { done: upload?.stored, count: upload?.receipt.count };
    return {
      head: page.say(halted ? "haltedHead" : "failedHead"),
      body: [
        notice(
          halted ? "warn" : "bad",
          piece(
            "div",
            { id: "problem" },
            ...(own ? [paragraph(page.say(error.code, error.about))] : []),
            ...(error ? [paragraph(page.say(error.key, error.about), own ? { class: "soft" } : {})] : []),
            ...(after ? [paragraph(page.say(after, stored))] : []),
          ),
        ),
        ...(again && !page.token ? [tokenField(page, typed)] : []),
        actions(
          out && upload.pending && button("resume", page.say("resume"), () => page.send("resume"), "primary"),
          again && button("resume", page.say("sendAgain"), () => page.send("resume", typed.token), "primary"),
          out && button("withdraw", page.say("withdraw"), () => page.askWithdraw(), upload.pending ? "" : "primary"),
          again && button("edit", page.say("edit"), () => page.edit()),
          !fatal && !out && !again && button("retry", page.say("retry"), () => page.retry(), "primary"),
        ),
      ],
    };
  },

  /** @param {Page} page */
  done(page) {
    const { count, erased, closed } = page.data;
    const other = page.opened
      ? [button("use-invitation", page.say("useInvitation"), () => page.invited(page.opened))]
      : [];
    if (erased)
      return {
        head: page.say("withdrawnHead"),
        body: [
          notice("good", paragraph(page.say("withdrawnText", { count }), { id: "done-text" })),
          ...other,
          actions(
            button("again", page.say("again"), () => page.again(), "primary"),
            button("another", page.say("another"), () => page.another()),
          ),
        ],
      };
    return {
      head: page.say("doneHead"),
      body: [
        notice("good", paragraph(page.say("doneText", { count }), { id: "done-text" })),
        ...other,
        ...(closed ? [notice("warn", paragraph(page.say(closed.sealed ? "doneSealed" : "doneClosed")))] : []),
        paragraph(page.say("receiptText")),
        paragraph(page.say(page.isPersisted ? "keptWell" : "keptBadly"), { id: "kept" }),
        actions(
          button("save", page.say("saveReceipt"), () => page.saveReceipt(), "primary"),
          !closed?.sealed && button("withdraw", page.say("withdraw"), () => page.askWithdraw()),
        ),
        piece("hr"),
        paragraph(page.say("anotherText")),
        actions(button("another", page.say("another"), () => page.another())),
        folded(
          page.say("forgetHead"),
          "forget-details",
          paragraph(page.say("forgetText")),
          button("forget", page.say("forget"), () => page.forget(), "danger"),
        ),
      ],
    };
  },

  /** @param {Page} page */
  withdrawing(page) {
    const { count, working } = page.data;
    if (working)
      return {
        head: page.say("withdrawHead"),
        body: [
          piece("progress", { "aria-labelledby": "screen-head" }),
          paragraph(page.say("withdrawingText"), { role: "status" }),
        ],
      };
    return {
      head: page.say("withdrawHead"),
      body: [
        notice("warn", paragraph(page.say("sureWithdraw", { count }))),
        actions(
          button("yes", page.say("yesWithdraw"), () => page.withdraw(), "primary"),
          button("no", page.say("no"), () => page.keep()),
        ),
      ],
    };
  },
};

/**
 * @param {Page} page
 * @param {{ token: string }} typed
 */
function tokenField(page, typed) {
  return field({
    id: "token",
    label: page.say("token"),
    attributes: { type: "password" },
    oninput: ({ target }) => (typed.token = target.value.trim()),
  });
}

/** @param {Page} page */
function people(page) {
  const { organiser, contact } = page.about;
  const rows = Object.entries({ organiser, contact }).filter(([, text]) => text);
  return rows.length
    ? [definitions(rows.map(([key, text]) => [page.say(key), foreign("dd", text ?? "", { id: key })]))]
    : [];
}

/** @param {Page} page */
function details(page) {
  const { campaign, about } = page,
    { pooled, reserve } = campaign,
    { grid, unit } = campaign.variable;
  const epsilon = { total: campaign.totalEpsilon, curve: campaign.epsilon, reserve, pooled };
  const scale = { size: grid.size, first: grid.label(0), last: grid.label(grid.size - 1), unit };
  /**
   * @param {string} id
   * @param {string} text
   */
  const plain = (id, text) => piece("dd", { id }, text);
  /**
   * @param {string} id
   * @param {string} text
   */
  const mono = (id, text) => piece("dd", { id, class: "mono", dir: "ltr" }, text);
  return folded(
    page.say("detailsHead"),
    "details",
    paragraph(page.say("promise", { factor: Number(Math.exp(campaign.totalEpsilon).toPrecision(2)) }), {
      id: "promise",
    }),
    ...(campaign.max_values_per_person > 1
      ? [paragraph(page.say("many", { count: campaign.max_values_per_person }))]
      : []),
    definitions([
      [page.say("server0"), mono("server0", about.urls[0])],
      [page.say("server1"), mono("server1", about.urls[1])],
      [page.say("digest"), mono("digest", about.digest)],
      [page.say("epsilon"), plain("epsilon", page.say(pooled === null ? "epsilonValue" : "epsilonWaves", epsilon))],
      [page.say("scale"), plain("scale", page.say("scaleValue", scale).trim())],
      [page.say("strata"), foreign("dd", campaign.strata.join(", "), { id: "strata" })],
      [page.say("checkedHead"), plain("checked", page.say(campaign.checked ? "checkedYes" : "checkedNo"))],
    ]),
    paragraph(page.say("hashHint"), { class: "soft" }),
  );
}

// Earlier contributions from this device: only whoever has the invitation is shown them.
/** @param {Page} page */
function before(page) {
  const { kept, upload } = page;
  if (!page.token) {
    if (!kept.any) return [];
    const typed = { token: "" };
    const recall = () => (typed.token ? page.recall(typed.token) : elementOf("token").focus());
    const shown = folded(
      page.say("beforeHead"),
      "before",
      paragraph(page.say("beforeText")),
      tokenField(page, typed),
      button("recall", page.say("recall"), recall),
    );
    shown.open = kept.pending;
    return [shown];
  }
  const numbers = kept.numbers.filter((number) => number !== upload.number);
  if (!numbers.length) return [];
  const buttons = numbers.map((number) =>
    button(`recall-${number}`, page.say("beforeOne", { number: number + 1 }), () => page.recall("", number)),
  );
  return [folded(page.say("beforeHead"), "before", actions(...buttons))];
}

// `moved`: another state is shown, so the reader is taken to its beginning.
/**
 * @param {Page} page
 * @param {boolean} moved
 */
export function render(page, moved) {
  const { state } = page;
  /** @type {HTMLElement} */
  const screen = elementOf("screen");
  const focused = (screen.contains(document.activeElement) && document.activeElement?.id) || "";
  const unfolded = moved ? [] : Array.from(screen.querySelectorAll("details[open]"), (one) => one.id);
  document.documentElement.lang = page.language;
  document.body.dataset.state = state;
  const { head, body, focus } = SCREENS[state](page);
  const step = STEPS[state] && page.say("step", { step: STEPS[state], steps: Object.keys(STEPS).length });
  screen.replaceChildren(
    ...(step ? [paragraph(step, { class: "soft step" })] : []),
    piece("h2", { id: "screen-head", tabindex: "-1" }, head),
    ...body,
  );
  screen.setAttribute("aria-busy", String(state === "loading" || state === "sending"));
  for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  renderFrame(page);
  if (moved) {
    elementOf(focus ?? "screen-head").focus({ preventScroll: true });
    if (!focus) scrollTo(0, 0);
    else elementOf(focus).scrollIntoView({ block: "center" });
  } else if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

// What stands around every screen.
/** @param {Page} page */
function renderFrame(page) {
  /**
   * @param {string} id
   * @param {string} text
   */
  const put = (id, text) => (elementOf(id).textContent = text);
  put("kicker", page.say("kicker"));
  put("footer", page.say("footer"));
  put("language-label", page.say("language"));
  if (page.campaign) put("title", page.campaign.title);
  /** @type {HTMLSelectElement} */
  const select = elementOf("language");
  if (!select.options.length) {
    select.append(...Object.entries(LANGUAGES).map(([value, name]) => piece("option", { value, lang: value }, name)));
    select.onchange = () => page.speak(select.value);
  }
  select.value = page.language;
}
