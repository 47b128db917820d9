// The token that admits to a campaign: in memory and in this tab, nowhere else.

const TOKEN = "fss-ecdf token";

// The token comes in the address's fragment, which no server sees, and is erased from it; this tab remembers it.
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    history.replaceState(null, "", location.pathname + location.search);
    sessionStorage.setItem(TOKEN, given);
  }
  return sessionStorage.getItem(TOKEN) ?? "";
}

export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
  return token;
}
