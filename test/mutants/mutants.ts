import { forgotten } from "./forgotten.ts";
import type { Mutant } from "./mutant.ts";

const driver = "src/drivers/proxmox";
const controller = "src/controllers/virtual-machine";
const orphan = "src/controllers/orphan";

/** Whose it is, before anything is done to it. */
const ownership: readonly Mutant[] = [
  {
    name: "takes a stranger's machine for its own",
    inHistories: true,
    edits: [
      {
        file: `${driver}/identity.ts`,
        find: 'return reason === undefined ? { is: "ours", mark } : { is: "foreign", ...reason };',
        replace: 'return { is: "ours", mark };',
      },
    ],
  },
  {
    name: "takes a machine without a mark for its own",
    inHistories: true,
    edits: [
      {
        file: `${driver}/identity.ts`,
        find: "if (mark === undefined) return unmarked(identity === claim.identity, isBroken);",
        replace:
          'if (mark === undefined) return { is: "ours", mark: { ...claim, state: "Owned", disks: {}, networks: {} } };',
      },
    ],
  },
  {
    name: "switches whatever stands under the id on and off",
    edits: [
      {
        file: `${driver}/operations/power.ts`,
        find: "  if (!stood.ok) return stood.begun;\n  return await send(context, { place: stood.standing.place, verb, params }, fence);",
        replace:
          "  const place = stood.ok\n    ? stood.standing.place\n    : { node: target.at.node, externalId: target.claim.externalId };\n  return await send(context, { place, verb, params }, fence);",
      },
    ],
  },
  {
    name: "destroys whatever stands under the id",
    step: "act in the last moment",
    edits: [
      {
        file: `${driver}/operations/destroy.ts`,
        find: "  if (!stood.ok) return stood.begun;\n  const { place, config } = stood.standing;",
        replace:
          '  if (!stood.ok) {\n    const path = machinePath({ node: operation.at.node, externalId: operation.claim.externalId });\n    const params = { purge: 1, "destroy-unreferenced-disks": 0 };\n    return begunOf(await context.api.write("DELETE", { path, params }, () => fence.mayWrite()), "destroy");\n  }\n  const { place, config } = stood.standing;',
      },
    ],
  },
  {
    name: "forgets which installation a machine belongs to",
    inHistories: true,
    edits: [
      {
        file: `${driver}/operations/standing.ts`,
        find: "    installation,\n",
        replace: '    installation: "00000000-0000-4000-8000-000000000000",\n',
      },
    ],
  },
  {
    name: "gives every machine the same identity",
    inHistories: true,
    edits: [
      {
        file: `${driver}/operations/create.ts`,
        find: "smbios1: `uuid=${claim.identity}`",
        replace: 'smbios1: "uuid=00000000-0000-4000-8000-000000000000"',
      },
    ],
  },
  {
    name: "passes a lock",
    inHistories: true,
    edits: [
      {
        file: `${driver}/operations/destroy.ts`,
        find: 'const params = { purge: 1, "destroy-unreferenced-disks": 0 };',
        replace: 'const params = { purge: 1, skiplock: 1, "destroy-unreferenced-disks": 0 };',
      },
    ],
  },
  {
    name: "takes the Claim of another object",
    guards: ["reserve-own-claim", "reserve-free-claim"],
    edits: [
      {
        file: "src/controllers/claims/ledger.ts",
        find: "if (there === undefined || !isHeld(there.spec)) return undefined;",
        replace: "return undefined;",
      },
      {
        file: "src/api/claim/rules.ts",
        find: "\"oldSelf.state in ['Reserved', 'Bound']\"",
        replace: "\"oldSelf.state in ['None']\"",
      },
    ],
  },
  {
    name: "uses an id again that rests",
    guards: ["claim-quarantine-over"],
    edits: [
      {
        file: "src/controllers/claims/ledger.ts",
        find: 'return this.#claims.byIndex("system", systemId).map(({ spec }) => spec.externalId);',
        replace:
          'return this.#claims.byIndex("system", systemId).filter(({ spec }) => isHeld(spec)).map(({ spec }) => spec.externalId);',
      },
    ],
  },
];

/** What is written down before, and what is looked at after. */
const intents: readonly Mutant[] = [
  {
    name: "acts before the intent is written",
    inHistories: true,
    edits: [
      {
        file: "src/controllers/operations/perform.ts",
        find: "  await write(record);\n",
        replace: "  void write(record).catch(() => undefined);\n",
      },
    ],
  },
  {
    name: "lets whoever works over an old session send, whatever the new one sees",
    edits: [
      {
        file: "src/controllers/hypervisor/reconcile.ts",
        find: "  delete session.epoch;\n  connections.doubt(key);\n",
        replace: "  connections.doubt(key);\n",
      },
    ],
  },
  {
    name: "sends what was decided before, while it finds out who wrote a newer epoch",
    edits: [
      {
        file: "src/controllers/hypervisor/reconcile.ts",
        find: "    delete session.epoch;\n",
        replace: "",
      },
    ],
  },
  {
    name: "forgets that another run superseded it",
    edits: [
      {
        file: "src/controllers/hypervisor/epoch-plan.ts",
        find: "  return [seen, observing?.newest, inList]\n",
        replace: "  return [seen, inList, observing && undefined]\n",
      },
    ],
  },
  {
    name: "forgets a newer epoch that only the bulk list showed",
    edits: [
      {
        file: "src/controllers/hypervisor/epoch-plan.ts",
        find: "  return [seen, observing?.newest, inList]\n",
        replace: "  return [seen, observing?.newest, inList && undefined]\n",
      },
    ],
  },
  {
    name: "forgets that another run was faster with its epoch",
    edits: [
      {
        file: "src/controllers/hypervisor/epoch.ts",
        find: "    if (newest !== undefined) await writeObserving(client, systemId, { newest });\n",
        replace: "",
      },
    ],
  },
  {
    name: "acknowledges a write before it is durable",
    edits: [
      {
        file: "src/store/open-store.ts",
        find: "      await this.#options.journal.append(batch);",
        replace: "      void this.#options.journal.append(batch).catch(() => undefined);",
      },
    ],
  },
  {
    name: "takes a lost reply for done",
    step: "change one's mind",
    edits: [
      {
        file: `${driver}/operations/begun.ts`,
        find: 'return { outcome: "unknown", failure: failureOf(result, attempted) };',
        replace: 'return { outcome: "done" };',
      },
    ],
  },
  {
    name: "takes what cannot be seen for absent",
    edits: [
      {
        file: `${controller}/plan.ts`,
        find: '    case "unknown":\n      return { do: "fail", failure: seen.failure };',
        replace: '    case "unknown":\n      return planVmAbsent(input, claim);',
      },
    ],
  },
  {
    name: "takes a hypervisor that does not answer for an absence",
    edits: [
      {
        file: `${driver}/observe.ts`,
        find: '    if (read.type === "failed") return unknown(read.failure);\n  }\n  return await searchCluster',
        replace:
          '    if (read.type === "failed") return settled({ at: "absent" });\n  }\n  return await searchCluster',
      },
    ],
  },
  {
    name: "takes an id that nobody answers for to be free",
    step: "move a machine unheard",
    edits: [
      {
        file: `${driver}/observe.ts`,
        find: "    return unknown(readFailureOf(probe, attempted));",
        replace: '    return settled({ at: "absent" });',
      },
    ],
  },
  {
    name: "calls a machine Ready whatever its power",
    edits: [
      {
        file: `${controller}/status.ts`,
        find: "return isWhole && seen.machine.power === vm.spec.powerState;",
        replace: "return isWhole;",
      },
    ],
  },
  {
    name: "says that it saw what nobody declared yet",
    inHistories: true,
    edits: [
      {
        file: `${controller}/status.ts`,
        find: "observedGeneration: keepsReady(vm, view) ? observedGeneration : generation,",
        replace: "observedGeneration: (generation ?? 0) + 1,",
      },
    ],
  },
  {
    name: "calls a disk large enough that is not",
    inHistories: true,
    edits: [
      {
        file: `${controller}/plan-disks.ts`,
        find: "if ((seenDisk(machine, disk)?.sizeBytes ?? 0) >= sizeBytes) continue;",
        replace: "if (seenDisk(machine, disk) !== undefined) continue;",
      },
    ],
  },
  {
    name: "tries again without a pause",
    edits: [
      {
        file: "src/hypervisor/categories.ts",
        find: "  delaysMs: [30 * secondMs, minuteMs, 2 * minuteMs, 5 * minuteMs, 10 * minuteMs],",
        replace: "  delaysMs: [100],",
      },
    ],
  },
  {
    name: "never waits longer the next time",
    step: "crash a node",
    edits: [
      {
        file: "src/hypervisor/categories.ts",
        find: "  delaysMs: [30 * secondMs, minuteMs, 2 * minuteMs, 5 * minuteMs, 10 * minuteMs],",
        replace: "  delaysMs: [30 * secondMs],",
      },
    ],
  },
  {
    name: "calls a machine Ready whose hypervisor does not answer",
    step: "cut off",
    edits: [
      {
        file: `${controller}/status.ts`,
        find: '    return { ...summary, type, status: "Unknown", reason: vmReasons.Unreachable };',
        replace:
          '    return { ...summary, type, status: isKnownReady(vm) ? "True" : "Unknown", reason: vmReasons.Unreachable };',
      },
    ],
  },
  {
    name: "never restarts a machine for what waits for that",
    step: "edit",
    edits: [
      {
        file: `${controller}/plan-power.ts`,
        find: "  const restart = planVmRestart(input, claim, found);\n",
        replace: "  const restart = undefined;\n",
      },
    ],
  },
  {
    name: "gives up a failed creation for good at once",
    step: "fail a worker",
    edits: [
      {
        file: "src/hypervisor/categories.ts",
        find: "{ ...forEver, attemptsMax: 5 }",
        replace: "{ ...forEver, attemptsMax: 1 }",
      },
    ],
  },
  {
    name: "leaves drift as it is",
    edits: [
      {
        file: `${controller}/plan-machine.ts`,
        find: 'return claim.everExisted && !declared.isEdited && declared.driftPolicy !== "Correct";',
        replace: "return claim.everExisted && !declared.isEdited;",
      },
    ],
  },
];

/** How things come to their end, and what has to stay. */
const endings: readonly Mutant[] = [
  {
    name: "lets the object go before its machine is",
    inHistories: true,
    edits: [
      {
        file: `${controller}/plan-deletion.ts`,
        find: '  if (!guard("deletion-unprotected", !declared.isProtected)) return { do: "protect" };',
        replace: '  if (!declared.isProtected) return { do: "finish", how: "Nothing" };',
      },
    ],
  },
  {
    name: "gives the id back before its machine is gone",
    inHistories: true,
    edits: [
      {
        file: `${controller}/plan-deletion.ts`,
        find: '  if (!guard("deletion-unprotected", !declared.isProtected)) return { do: "protect" };',
        replace: '  if (!declared.isProtected) return { do: "finish", how: "Retire" };',
      },
    ],
  },
  {
    name: "lets the object go while its hypervisor is away",
    guards: ["let-go-holds-nothing"],
    edits: [
      {
        file: `${controller}/away.ts`,
        find: "if (isDeleting(turn.vm) && (await holdsNothing(turn))) return letGo(turn);",
        replace: "if (isDeleting(turn.vm)) return letGo(turn);",
      },
    ],
  },
  {
    name: "lets the object go before its volumes are",
    edits: [
      {
        file: `${controller}/plan.ts`,
        find: "if (leftovers === undefined) return searchFor(input, claim);",
        replace: 'if (leftovers === undefined) return { do: "finish", how: "Retire", stays: [] };',
      },
    ],
  },
  {
    name: "does not write down what a failed step left",
    edits: [
      {
        file: `${controller}/plan-deletion.ts`,
        find: "  if (volumes === undefined && probable === undefined) return undefined;\n",
        replace: "  if (claim.node !== undefined) return undefined;\n",
      },
    ],
  },
  {
    name: "forgets an empty reservation that may be its own",
    step: "no worker, unheard",
    edits: [
      {
        file: `${controller}/plan.ts`,
        find: 'return isHusk ? leaveHusk(input, failure) : { do: "moveOn", failure, leaves: "Nothing" };',
        replace: 'return { do: "moveOn", failure, leaves: "Nothing" };',
      },
    ],
  },
  {
    name: "destroys a disk that should be retained",
    inHistories: true,
    edits: [
      {
        file: `${controller}/volume-ownership.ts`,
        find: '  return known.disk === undefined ? known.onDelete !== "Retain" : known.onDelete === "Delete";',
        replace: "  return true;",
      },
      {
        file: `${driver}/operations/destroy.ts`,
        find: 'return known.id === volume && (known.onDelete === "Retain" || isFollowed(known));',
        replace: "return false;",
      },
    ],
  },
  {
    name: "destroys a disk that was only taken out of the spec",
    edits: [
      {
        file: `${controller}/plan-disks.ts`,
        find: "  for (const name of input.declared.absentDisks ?? []) {",
        replace:
          "  const named = input.declared.disks.map((one) => one.name);\n  const gone = (at.claim.volumes ?? []).map((one) => one.disk).filter((one) => one !== undefined && !named.includes(one));\n  for (const name of [...(input.declared.absentDisks ?? []), ...gone]) {",
      },
    ],
  },
  {
    name: "does not write down that a machine stood",
    inHistories: true,
    edits: [
      {
        file: `${controller}/plan-machine.ts`,
        find: "  if (!claim.everExisted) {\n    const { createdFrom } = declared;",
        replace:
          "  if (!claim.everExisted && claim.node === undefined) {\n    const { createdFrom } = declared;",
      },
    ],
  },
  {
    name: "makes another machine where somebody took its id",
    step: "recycle an id",
    guards: ["other-id-while-reserved"],
    edits: [
      {
        file: `${controller}/plan.ts`,
        find: 'return claim.idChosenBy === "Berth" && claim.state === "Reserved" && !claim.everExisted;',
        replace: 'return claim.idChosenBy === "Berth";',
      },
    ],
  },
];

/**
 * Changes that make the program fall over: that breaks the law "sound" and proves nothing about the
 * line. Each is tried again, and the next time it works.
 */
export const falls: readonly Mutant[] = [
  {
    name: "falls over once",
    edits: [
      {
        file: `${driver}/operations/power.ts`,
        find: "  return await send(context, { place: stood.standing.place, verb, params }, fence);",
        replace:
          "  if ((globalThis.fallen ??= 0) === 0) globalThis.fallen += missing.length;\n  return await send(context, { place: stood.standing.place, verb, params }, fence);",
      },
    ],
  },
  {
    name: "leaves a promise alone that is rejected",
    edits: [
      {
        file: `${driver}/operations/power.ts`,
        find: "  return await send(context, { place: stood.standing.place, verb, params }, fence);",
        replace:
          '  void Promise.reject(new Error("boom"));\n  return await send(context, { place: stood.standing.place, verb, params }, fence);',
      },
    ],
  },
];

/** Lines of the clean-up, which only histories with orphans.policy: DeleteOwned reach. */
const cleanUps: readonly Mutant[] = [
  {
    name: "takes a Claim that only repeats a mark for a proof",
    step: "lose a Claim",
    edits: [
      {
        file: `${orphan}/plan.ts`,
        find: 'return state === "Reserved" && everExisted ? "Marked" : "Ours";',
        replace: 'return state === "Quarantined" && everExisted ? "Marked" : "Ours";',
      },
    ],
  },
  {
    name: "destroys a machine that nothing declares while it runs",
    step: "strip",
    edits: [
      {
        file: `${orphan}/evidence.ts`,
        find: 'const isStopped = power === "Stopped";',
        replace: "const isStopped = true;",
      },
      {
        file: `${orphan}/steps.ts`,
        find: '  if (machine.power !== "Stopped") return { do: "look" };\n',
        replace: "",
      },
    ],
  },
];

export const mutants: readonly Mutant[] = [
  ...ownership,
  ...intents,
  ...endings,
  ...cleanUps,
  ...forgotten,
];
