// What a person has entered and chosen so far; nothing is chosen for the person.

/**
 * @typedef {{ way: string, value: string, stratum: string, column: number | null, groupColumn: number | null,
 *   allowed: boolean }} Form
 */

/**
 * @param {string} [way]
 * @returns {Form}
 */
export const emptyForm = (way = "one") => ({
  way,
  value: "",
  stratum: "",
  column: null,
  groupColumn: null,
  allowed: false,
});
