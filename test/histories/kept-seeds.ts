/**
 * Seeds that found something, with what it was. They are run for ever. Every fault rolls dice of
 * its own name, so a seed stays the history that it is when the menu grows. When the code changes
 * it may become another one: what keeps a line for good is a mutant that breaks it again.
 */
export const keptSeeds: readonly { readonly seed: number; readonly found: string }[] = [
  {
    seed: 109252221,
    found: "after a lost status an id is given up while the request that creates its VM is late",
  },
  {
    seed: 174367190,
    found: "a Claim is lost, and the policy destroys what only a marker calls ours",
  },
  { seed: 311848089, found: "nobody hears of an empty VM under a Claim whose object is gone" },
  {
    seed: 608599397,
    found: "an epoch that arrives after a newer one of the same life is taken for its newest",
  },
  {
    seed: 24603170,
    found: "people remove with a copy what the original made and released",
  },
  {
    seed: 377152493,
    found: "people remove with a copy what the original made since under an id that the copy knew",
  },
  { seed: 396306470, found: "the Claim was read at every look at a task" },
  { seed: 608599031, found: "a download that failed at a place that nobody needs any more" },
  { seed: 608600038, found: "Orphans that the policy cannot destroy take turns at their statuses" },
  { seed: 550864553, found: "a person's volume in the place of an Absent disk destroyed" },
  { seed: 482811054, found: "a volume that came after its VM was released, told by nobody" },
  { seed: 626926720, found: "slots of a VM whose status was taken away" },
  { seed: 626926574, found: "a disk of a person's in a VM that was released and adopted" },
  { seed: 124742745, found: "a download whose failed attempts another failure made forgotten" },
  { seed: 124742899, found: "a disk that was to stay, under an id that was used again" },
  { seed: 483565715, found: "one download begun by two copies of the installation" },
  { seed: 744082494, found: "a second VM for an object whose VM another copy had released" },
  { seed: 744084529, found: "a disk that grew unseen and was not known as Berth's" },
  { seed: 744085067, found: "a volume that only a copy of the installation had named" },
  { seed: 744086080, found: "a renamed disk that lost its place in the boot order" },
  { seed: 788550838, found: "an adopted VM with a disk that its spec does not name" },
  { seed: 653422662, found: "a VM judged in the moment in which its hypervisor came back" },
  { seed: 88337908, found: "a disk that only the spec of a copy declared" },
  { seed: 430889231, found: "evidence that was reworded with every reading of a node's clock" },
  { seed: 86708609, found: "a disk whose detached volume somebody removed" },
  { seed: 430889660, found: "an image file whose task nobody remembers" },
  { seed: 633051474, found: "a task of seconds ago taken for the result of a lost request" },
  { seed: 633051563, found: "a renamed disk that was to be destroyed" },
  { seed: 322244714, found: "slots that an operation without a known end held for ever" },
  { seed: 125379847, found: "another volume with the name of a disk that a disk-holder VM kept" },
  { seed: 803885210, found: "a volume on a node where no VM of its id is, told by nobody" },
  { seed: 271697168, found: "an older task taken for a result, after its record was gone" },
  { seed: 498719596, found: "a disk taken off a VM that is suspended to disk" },
];
