import type { Mutant } from "./mutant.ts";

const controller = "src/controllers/virtual-machine";
const orphan = "src/controllers/orphan";
const engine = "src/controllers/operations";
const image = "src/controllers/vm-image";

/** Facts that have to be durable, moved back into the memory of a process. */
export const forgotten: readonly Mutant[] = [
  {
    name: "forgets with the process how the same operation ended before",
    edits: [
      {
        file: `${engine}/perform.ts`,
        find: "  const ends = before && endsOf(before, deps.clock.nowMs());",
        replace: "  const ends = undefined;",
      },
    ],
  },
  {
    name: "counts the window of a request from the start of the process",
    edits: [
      {
        file: `${engine}/resume.ts`,
        find: "  let leftMs = windowLeftMs(record, clock);",
        replace:
          "  const fromMs = (remembered.fromMs ??= clock.monotonicMs());\n  let leftMs = Math.max(0, fromMs + (record.windowMs ?? 0) - clock.monotonicMs());",
      },
    ],
  },
  {
    name: "takes a record over without writing that down",
    edits: [
      {
        file: `${engine}/resume.ts`,
        find: "    await subject.save(record);\n    leftMs",
        replace: "    leftMs",
      },
    ],
  },
  {
    name: "forgets with the process what holds slots",
    edits: [
      {
        file: `${engine}/perform.ts`,
        find: "record.outcome === undefined ? (record.slots ?? []) : [];",
        replace: "[];",
      },
    ],
  },
  {
    name: "forgets with the process that what nothing shows was done",
    edits: [
      {
        file: `${engine}/resume.ts`,
        find: '  if (isDone(settlement) && isUnshown) await subject.save({ ...record, outcome: "Done" });\n',
        replace: "",
      },
    ],
  },
  {
    name: "forgets with the process when a failure is tried again",
    edits: [
      {
        file: `${engine}/attempts.ts`,
        find: "  if (failure?.nextRetryAt === undefined) return 0;",
        replace: "  if (failure !== undefined || nowMs > 0) return 0;",
      },
    ],
  },
  {
    name: "forgets with the process when a failed step is tried again",
    edits: [
      {
        file: `${engine}/failed-steps.ts`,
        find: "    .filter(({ waitMs }) => waitMs > 0);",
        replace: "    .filter(({ waitMs }) => waitMs < 0);",
      },
    ],
  },
  {
    name: "forgets with the process that no worker was started",
    edits: [
      {
        file: `${controller}/settling.ts`,
        find: "  const recorded = await turn.deps.ledger.record(claim, { workerNeverStarted: true });",
        replace: "  const recorded = claim;",
      },
    ],
  },
  {
    name: "forgets with the process which volumes under the id are others'",
    edits: [
      {
        file: `${controller}/look-ahead.ts`,
        find: "  const noted = await turn.deps.ledger.record(claim, { otherVolumes });",
        replace: "  const noted = { ...claim, spec: { ...claim.spec, otherVolumes } };",
      },
    ],
  },
  {
    name: "keeps what an operation is about to allocate out of the Claim",
    edits: [
      {
        file: `${controller}/allocation.ts`,
        find: "  turn.claim = await deps.ledger.record(turn.claim ?? claim, { allocation });\n",
        replace: "  void allocation;\n",
      },
    ],
  },
  {
    name: "forgets with the process since when a thing is seen that nothing declares",
    edits: [
      {
        file: `${orphan}/sweep.ts`,
        find: "    sightings: shortenedTimes(new Map(unreported.map(([one, { firstMs }]) => [one, firstMs]))),",
        replace: "    sightings: unreported.length < 0 ? record.sightings : new Map(),",
      },
    ],
  },
  {
    name: "forgets with the process since when a kept thing is missing",
    edits: [
      {
        file: `${orphan}/sweep.ts`,
        find: "    absences: shortenedTimes(absences),",
        replace: "    absences: new Map(),",
      },
    ],
  },
  {
    name: "forgets with the process since when a Claim is held for nothing",
    edits: [
      {
        file: `${orphan}/sweep.ts`,
        find: "    emptyClaims: shortenedTimes(emptySince),",
        replace: "    emptyClaims: new Map(),",
      },
    ],
  },
  {
    name: "forgets with the process that much less was seen than before",
    edits: [
      {
        file: `${orphan}/watch.ts`,
        find: "  if (suspicion !== before) await writeRecord(deps, name, { ...record, suspicion });\n",
        replace: "",
      },
    ],
  },
  {
    name: "forgets with the process which volumes are probably its own",
    edits: [
      {
        file: `${controller}/plan-leftovers.ts`,
        find: '  return { do: "record", change: { allocation: settled, probableVolumes } };',
        replace: '  return { do: "record", change: { allocation: settled } };',
      },
    ],
  },
  {
    name: "forgets with the process what a VM was made from",
    edits: [
      {
        file: `${controller}/plan-machine.ts`,
        find: '    return { do: "record", change: { everExisted: true, ...(createdFrom && { createdFrom }) } };',
        replace: '    return { do: "record", change: { everExisted: true } };',
      },
      {
        file: `${controller}/plan-machine.ts`,
        find: "  if (claim.everExisted && claim.createdFrom === undefined && createdFrom !== undefined) {",
        replace:
          "  if (claim.everExisted && claim.createdFrom === undefined && createdFrom === null) {",
      },
    ],
  },
  {
    name: "forgets with the process which disk-holder VM it chose",
    edits: [
      {
        file: `${controller}/keeper.ts`,
        find: "  turn.claim = await deps.ledger.record(claim, { diskHolder: keeper });",
        replace: "  turn.claim = { ...claim, spec: { ...claim.spec, diskHolder: keeper } };",
      },
    ],
  },
  {
    name: "forgets with the process which disks are still to come",
    edits: [
      {
        file: `${controller}/plan-claim.ts`,
        find: "  if (!jsonEqual(expectedDisks, claim.expectedDisks ?? [])) change.expectedDisks = expectedDisks;",
        replace: "  void expectedDisks;",
      },
    ],
  },
  {
    name: "forgets with the process what it changed lately",
    edits: [
      {
        file: `${controller}/effects.ts`,
        find: "    recentSteps: recentWith(turn, step, operation),\n",
        replace: "",
      },
    ],
  },
  {
    name: "forgets with the process how often a step failed",
    edits: [
      {
        file: `${engine}/attempts.ts`,
        find: "  if (step !== undefined) return failedBefore(object, step, category)?.attempts ?? 0;",
        replace: "  if (step !== undefined) return 0;",
      },
    ],
  },
  {
    name: "forgets with the process how a copy of an image failed",
    edits: [
      {
        file: "src/controllers/vm-image/failing.ts",
        find: "  const failed = withFailure(turn.image, copy, failure);",
        replace: "  void withFailure(turn.image, copy, failure);\n  const failed = copy;",
      },
    ],
  },
  {
    name: "forgets with the process which operation brings a file",
    edits: [
      {
        file: "src/controllers/vm-image/file-claims.ts",
        find: '    operation: defined<NonNullable<FilePart["operation"]>>({ id, key, step, node, since }),',
        replace: "    operation: defined({ id, key, step, node, since }) && undefined,",
      },
    ],
  },
  {
    name: "writes its epoch before it is recorded",
    edits: [
      {
        file: "src/controllers/hypervisor/epoch.ts",
        find: "  await writeEpochRecord(client, systemId, next);\n",
        replace: "",
      },
    ],
  },
  {
    name: "forgets with the process since when a volume of others is not listed",
    edits: [
      {
        file: `${controller}/other-volumes.ts`,
        find: "    return { ...present(volume, nowMs), missingSince: formatTime(nowMs) };",
        replace: "    return volume;",
      },
    ],
  },
  {
    name: "looks for the Claim of an object in its cache",
    edits: [
      {
        file: "src/controllers/claims/ledger.ts",
        find: "    const found = await listOwned(this.#client, metadata);",
        replace: '    const found = listOwned && this.#claims.byIndex("owner", key);',
      },
    ],
  },
  {
    name: "waits for the sweep of another turn, which is forgotten",
    edits: [
      {
        file: `${orphan}/reconcile.ts`,
        find: "  if (!(await deps.sweepFor(connection.name)) || sweep.swept === undefined) {",
        replace: "  if (sweep.swept === undefined) {",
      },
    ],
  },
  {
    name: "forgets with the process how often a hypervisor did not answer",
    edits: [
      {
        file: "src/controllers/hypervisor/reconcile.ts",
        find: "  const last = lastFailure(hypervisor, { createdFrom, asked }, deps.beganMs);",
        replace: "  const last = untroubled;",
      },
    ],
  },
  {
    name: "forgets with the status for which endpoints credentials were given",
    edits: [
      {
        file: "src/controllers/hypervisor/reconcile.ts",
        find: "  await recordCredentials(client, hypervisor, { given, uids });",
        replace: "  void [client, uids, given, recordCredentials];",
      },
    ],
  },
  {
    name: "forgets with the process to which size a disk grows",
    edits: [
      {
        file: `${controller}/growth.ts`,
        find: "  turn.claim = await deps.ledger.record(claim, { volumes: change });",
        replace:
          "  turn.claim = { ...claim, spec: { ...claim.spec, volumes: change } };\n  void deps;",
      },
    ],
  },
  {
    name: "forgets with the process by what a volume was proven to be Berth's",
    edits: [
      {
        file: `${controller}/plan-claim.ts`,
        find: "      return { entries: [{ ...entry, ...more, proof }], was };",
        replace: "      return { entries: [{ ...entry, ...more }], was };",
      },
    ],
  },
  {
    name: "forgets with the process which operation made a volume",
    edits: [
      {
        file: `${controller}/plan-claim.ts`,
        find: "...(madeBy && { madeBy }) };",
        replace: "...(madeBy && {}) };",
      },
    ],
  },
  {
    name: "forgets with the process which names earlier allocations had",
    edits: [
      {
        file: `${controller}/allocation.ts`,
        find: "    ...earlier,\n",
        replace: "    ...(earlier && {}),\n",
      },
    ],
  },
  {
    name: "forgets with the process that nothing of an allocation was sent",
    edits: [
      {
        file: `${controller}/allocation.ts`,
        find: "  turn.claim = await deps.ledger.record(claim, { allocation: { ...allocation, settledAt } });",
        replace:
          "  turn.claim = { ...claim, spec: { ...claim.spec, allocation: { ...allocation, settledAt } } };",
      },
    ],
  },
  {
    name: "forgets with the process that an allocation came to its end",
    edits: [
      {
        file: `${controller}/plan-claim.ts`,
        find: "    ...(isSettled ? { settledAt: formatTime(nowMs) } : {}),",
        replace: "    ...(isSettled && nowMs < 0 ? { settledAt: formatTime(nowMs) } : {}),",
      },
    ],
  },
  {
    name: "forgets with the process how large a file was that it brought",
    edits: [
      {
        file: `${image}/replaced.ts`,
        find: "  return defined<Partial<FilePart>>({ volume, size, createdAt });",
        replace: "  return defined<Partial<FilePart>>({ volume, createdAt, ...(size && {}) });",
      },
    ],
  },
  {
    name: "forgets with the process when a file was created that it brought",
    edits: [
      {
        file: `${image}/replaced.ts`,
        find: "  return defined<Partial<FilePart>>({ volume, size, createdAt });",
        replace: "  return defined<Partial<FilePart>>({ volume, size, ...(createdAt && {}) });",
      },
    ],
  },
  {
    name: "forgets with the process that an id was reserved before preflight",
    edits: [
      {
        file: "src/controllers/claims/reservation.ts",
        find: '      ...(isPending ? { preflight: "Pending" } : {}),',
        replace: "      ...(isPending ? {} : {}),",
      },
    ],
  },
  {
    name: "forgets with the process that it reported a conflict",
    edits: [
      {
        file: `${controller}/flapping.ts`,
        find: "    return isOf ? { ...one, conflict: true } : one;",
        replace: "    return isOf ? { ...one } : one;",
      },
    ],
  },
  {
    name: "forgets with the process how another step of a copy failed",
    edits: [
      {
        file: `${image}/copies.ts`,
        find: "  return { ...known, failure, ...(others.length === 0 ? {} : { failedSteps: others }) };",
        replace: "  return { ...known, failure, ...(others.length === 0 ? {} : {}) };",
      },
    ],
  },
  {
    name: "forgets with the process which task an operation has",
    edits: [
      {
        file: `${engine}/resume.ts`,
        find: "  await subject.save(written);\n",
        replace: "",
      },
    ],
  },
  {
    name: "forgets with the process what ended without a result before another step",
    edits: [
      {
        file: `${engine}/record.ts`,
        find: "    ...(unfinished.length === 0 ? {} : { unfinished }),",
        replace: "    ...(unfinished.length === 0 ? {} : {}),",
      },
    ],
  },
];
