/**
 * Seeds that found something, with what it was. They are run for ever. With every change of the
 * menu a seed becomes another history; what keeps a line for good is a mutant that breaks it again.
 */
export const keptSeeds: readonly { readonly seed: number; readonly found: string }[] = [
  { seed: 12, found: "a volume that a killed worker left was forgotten with its machine" },
  { seed: 16, found: "an empty reservation of a lost request was forgotten" },
  { seed: 19, found: "a disk whose size was not written down was grown for ever" },
  { seed: 94, found: "the same after a failure, without being looked at again" },
  { seed: 112, found: "a suspended machine was called as declared while its disk was to grow" },
  { seed: 210, found: "a machine was taken back for a change that can never be made" },
  { seed: 284, found: "a new leader called a machine Ready that it had not seen" },
  { seed: 293, found: "a creation that arrived twice was taken for a stranger's machine" },
  { seed: 322, found: "volumes of a machine that stands were called leftovers" },
  { seed: 410, found: "the proof of an empty reservation was lost with the next failure" },
  { seed: 414, found: "a full storage stalled a machine for good" },
  { seed: 1140, found: "an object without a machine stayed Unknown" },
  {
    seed: 1670,
    found: "the first-boot disc of a machine that was let go and removed was not told",
  },
  { seed: 1713, found: "a machine was let go between the ejection and the removal of its disc" },
  { seed: 2007, found: "who no longer led wrote the ledger with old news" },
  { seed: 2729, found: "memory that a suspend left on another node was in the way without end" },
  { seed: 3202, found: "high availability that gave up was waited for without end" },
  { seed: 3970, found: "the disc that came late to a machine which was let go was not told" },
  {
    seed: 4417,
    found: "a leftover that was listed twice could not be written down, and nothing went on",
  },
  {
    seed: 5213,
    found:
      "a volume that a list missed for a minute was taken for the machine's own, and destroyed",
  },
  { seed: 6401, found: "a keeper whose creation arrived twice was taken for a stranger's" },
  { seed: 9041, found: "what was begun on a machine that somebody replaced stayed open for ever" },
  { seed: 9440, found: "a new disk got the name of a renamed one, and the machine booted from it" },
  { seed: 10_940, found: "a machine stopped twice between ticks was left off" },
  { seed: 11_121, found: "a machine without its own disk waited for an image" },
  { seed: 12_037, found: "three stuck on one stranger, and the remedy of one belied the others" },
  {
    seed: 14_620,
    found: "a machine without a source that was made anew did not boot from its disk",
  },
  { seed: 15_531, found: "a keeper was forgotten while the request that makes it was on its way" },
  { seed: 18_240, found: "a disk that only waited to be there could not be handed over" },
  { seed: 20_059, found: "a machine replaced while it was looked at was called missing" },
];
