// The token that admits to a campaign: in memory and in this tab, nowhere else.

// Saved pages of several campaigns are one origin to a browser, and may share a tab.
/** @param {string} digest */
const placeOf = (digest) => `fss-ecdf token ${digest}`;

// The token in the address's fragment, which no server sees. It is erased from the address; "": there is none.
export function invitationToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token")?.trim();
  if (given) history.replaceState(null, "", location.pathname + location.search);
  return given ?? "";
}

// Where the browser keeps nothing, a reload asks for the token again.
/** @param {string} digest */
export function rememberedToken(digest) {
  try {
    return sessionStorage.getItem(placeOf(digest)) ?? "";
  } catch {
    return "";
  }
}

/**
 * @param {string} digest
 * @param {string} token
 */
export function rememberToken(digest, token) {
  try {
    if (token) sessionStorage.setItem(placeOf(digest), token);
    else sessionStorage.removeItem(placeOf(digest));
  } catch {
    // it is in memory
  }
}
