// What node_modules lacks, by comparing npm's two lockfiles: the repository's, and the hidden one
// in which npm notes what it put there. No stamp of our own would know of an `npm install` by hand.

/**
 * @typedef {object} Entry
 * @property {string} [version]
 * @property {string} [integrity]
 * @property {boolean} [dev]
 * @property {boolean} [optional]
 * @property {boolean} [devOptional]
 * @property {boolean} [link]
 *
 * @typedef {{ packages?: Record<string, Entry> }} Lock
 */

/**
 * @param {Lock | undefined} lock
 * @returns {Entry[]}
 */
export function installedPackages(lock) {
  return Object.values(lock?.packages ?? {});
}

/**
 * The folders that should be there and are not, or not in the locked version. An optional package
 * may be absent for good reasons (another processor); but if it is there, its version counts.
 *
 * @param {object} input
 * @param {Lock | undefined} input.lock The repository's lockfile.
 * @param {Lock | undefined} input.installed What npm says that it installed, if it ever ran.
 * @param {boolean} input.dev Whether the development packages are wanted too.
 * @param {(path: string) => boolean} input.exists
 * @returns {string[]}
 */
export function missingPackages({ lock, installed, dev, exists }) {
  return Object.entries(lock?.packages ?? {})
    .filter(([path, entry]) => {
      if (path === "" || entry.link === true) return false;
      const found = installed?.packages?.[path];
      if (found === undefined || !exists(path)) return isRequired(entry, dev);
      return found.version !== entry.version || found.integrity !== entry.integrity;
    })
    .map(([path]) => path);
}

/**
 * @param {Entry} entry
 * @param {boolean} dev
 * @returns {boolean}
 */
function isRequired(entry, dev) {
  if (entry.optional === true) return false;
  return dev || !(entry.dev === true || entry.devOptional === true);
}
