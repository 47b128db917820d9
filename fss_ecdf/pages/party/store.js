// What the browser keeps for this page, for each invitation: the receipt, and until both servers have stored everything,
// the positions that are being sent, so that a reload goes on. Nothing of it leaves the machine, and no token is in it.

const DATABASE = "fss-ecdf";
const TABLE = "uploads";

/** @param {IDBRequest} request */
function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** @param {IDBTransaction} transaction */
const ended = (transaction) =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = resolve;
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });

export class Store {
  /** @param {IDBDatabase} database */
  constructor(database) {
    this.database = database;
    this.name = "";
  }

  static async open() {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(TABLE);
    return new Store(await done(opening));
  }

  /**
   * @param {string} kind
   * @param {string} [name]
   */
  get(kind, name = this.name) {
    return done(this.database.transaction(TABLE).objectStore(TABLE).get([name, kind]));
  }

  // The [name, kind] of everything whose name begins so; names have no mark above "~".
  /** @param {string} prefix */
  keys(prefix) {
    const range = IDBKeyRange.bound([prefix], [`${prefix}~`]);
    return done(this.database.transaction(TABLE).objectStore(TABLE).getAllKeys(range));
  }

  // On disk when it returns.
  /**
   * @param {string} kind
   * @param {unknown} value
   * @param {string} [name]
   */
  async put(kind, value, name = this.name) {
    const writing = this.database.transaction(TABLE, "readwrite", { durability: "strict" });
    writing.objectStore(TABLE).put(value, [name, kind]);
    await ended(writing);
  }

  /**
   * @param {string[]} kinds
   * @param {string} [name]
   */
  async remove(kinds, name = this.name) {
    const writing = this.database.transaction(TABLE, "readwrite", { durability: "strict" });
    for (const kind of kinds) writing.objectStore(TABLE).delete([name, kind]);
    await ended(writing);
  }
}
