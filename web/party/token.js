// The token that admits to a campaign: in memory and in this tab, nowhere else.

// Saved pages of several campaigns are one origin to a browser, and may share a tab.
const placeOf = (digest) => `fss-ecdf token ${digest}`;

// The token comes in the address's fragment, which no server sees, and is erased from it; this tab remembers it.
export function takeToken(digest) {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    history.replaceState(null, "", location.pathname + location.search);
    sessionStorage.setItem(placeOf(digest), given);
  }
  return sessionStorage.getItem(placeOf(digest)) ?? "";
}

export function keepToken(digest, token) {
  sessionStorage.setItem(placeOf(digest), token);
  return token;
}
