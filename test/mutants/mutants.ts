/** One change of the code. */
export interface Edit {
  readonly file: string;
  /** The line as it is; it must occur once, so that a change of the code is noticed here. */
  readonly find: string;
  readonly replace: string;
}

/**
 * A safety line, broken on purpose. The histories must notice, or they prove nothing. Where one
 * line stands behind another, both are broken: each alone is caught by the other.
 */
export interface Mutant {
  readonly name: string;
  /** The step of a history that is likely to show it: a search tries only seeds that have it. */
  readonly step?: string;
  readonly edits: readonly [Edit, ...Edit[]];
}

const driver = "src/drivers/proxmox";
const controller = "src/controllers/virtual-machine";
const orphan = "src/controllers/orphan";

/** Whose it is, before anything is done to it. */
const ownership: readonly Mutant[] = [
  {
    name: "takes a stranger's machine for its own",
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
    name: "takes a copied mark for a proof",
    edits: [
      {
        file: `${driver}/identity.ts`,
        find: "if (mark.identity !== claim.identity || identity !== claim.identity) {",
        replace: "if (mark.identity !== claim.identity) {",
      },
    ],
  },
  {
    name: "believes at once that volumes in its way are gone",
    edits: [
      {
        file: `${controller}/in-the-way.ts`,
        find: "return sinceMs !== undefined && nowMs - sinceMs < absenceMs ? [volume] : [];",
        replace: "return sinceMs === nowMs - absenceMs ? [volume] : [];",
      },
    ],
  },
  {
    name: "switches whatever stands under the id on and off",
    edits: [
      {
        file: `${driver}/operations/power.ts`,
        find: "  if (!stood.ok) return stood.begun;\n  const { place } = stood.standing;",
        replace:
          "  const place = stood.ok\n    ? stood.standing.place\n    : { node: target.at.node, externalId: target.claim.externalId };",
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
    name: "changes a machine without naming its version",
    edits: [
      {
        file: `${driver}/operations/change.ts`,
        find: "        digest: config.digest,\n",
        replace: "",
      },
    ],
  },
  {
    name: "frees volumes that it cannot tell to be its own",
    step: "clear up by hand",
    edits: [
      {
        file: `${controller}/plan.ts`,
        find: 'const own = leftovers.filter(({ proof }) => proof === "Claimed" || proof === "MadeUnderMark");',
        replace: "const own = leftovers;",
      },
      {
        file: `${driver}/operations/destroy.ts`,
        find: 'if (leftover.proof !== "Claimed" && leftover.proof !== "MadeUnderMark") {',
        replace: "if (false) {",
      },
    ],
  },
  {
    name: "takes volumes that were there before for its own",
    step: "declare over volumes",
    edits: [
      {
        file: `${driver}/leftovers.ts`,
        find: '  if (before?.includes(volume) === true) return "Before";\n',
        replace: "",
      },
      {
        file: `${driver}/preflight.ts`,
        find: "    ...(before.ok ? leftoversOf(inTheWay, draft) : [before.failure]),\n",
        replace: "",
      },
    ],
  },
  {
    name: "destroys disks that somebody put into its machine",
    step: "attach a disk",
    edits: [
      {
        file: `${controller}/plan-deletion.ts`,
        find: "const stays = machine.volumes.filter((volume) => volume.isOwn && !mayGo(claim, volume));",
        replace:
          "const stays = machine.volumes.filter((volume) => volume.isOwn && !mayGo(claim, volume) && volume.disk !== undefined);",
      },
    ],
  },
  {
    name: "forgets which installation a machine belongs to",
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
    edits: [
      {
        file: "src/controllers/claims/ledger.ts",
        find: "      if (isHeld(there.spec)) return isSame(there, claim) ? ours(there) : taken(there);\n      if (!this.#isFree(there.spec)) return taken(there);\n",
        replace: "",
      },
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
    edits: [
      {
        file: "src/controllers/claims/ledger.ts",
        find: 'return this.#claims.byIndex("system", systemId).map(({ spec }) => spec.externalId);',
        replace:
          'return this.#claims.byIndex("system", systemId).filter(({ spec }) => isHeld(spec)).map(({ spec }) => spec.externalId);',
      },
      {
        file: "src/controllers/claims/ledger.ts",
        find: 'return state === "Quarantined" && Date.parse(quarantineUntil) <= this.#options.clock.nowMs();',
        replace: 'return state === "Quarantined" && quarantineUntil !== "";',
      },
    ],
  },
];

/** What is written down before, and what is looked at after. */
const intents: readonly Mutant[] = [
  {
    name: "acts before the intent is written",
    edits: [
      {
        file: `${controller}/effects.ts`,
        find: '  await writeView(turn, {\n    state: { is: "working", reason, message: step.intent },\n    operation,\n    failedSteps: stillFailed(turn, step),\n    ...(step.name === "Start" ? { handled: restartHandled(turn) } : {}),\n  });',
        replace:
          '  void writeView(turn, {\n    state: { is: "working", reason, message: step.intent },\n    operation,\n    failedSteps: stillFailed(turn, step),\n    ...(step.name === "Start" ? { handled: restartHandled(turn) } : {}),\n  }).catch(() => undefined);',
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
    name: "sends without the lease",
    edits: [
      {
        file: "src/runtime/leader-lease.ts",
        find: "    mayWrite: (nowMs = now()) => claim.isHeld(nowMs) && nowMs >= claim.safeAfterMs(),",
        replace: "    mayWrite: () => true,",
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
    name: "believes an absence while a request may be on its way",
    step: "change one's mind",
    edits: [
      {
        file: `${controller}/plan.ts`,
        find: "  if (isUnsettled(input)) return waitForOpen(input);\n  if (declared.isDeleting) {",
        replace: "  if (declared.isDeleting) {",
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
    name: "trusts an old list of Claims",
    step: "regret",
    edits: [
      {
        file: "src/controllers/claims/ledger.ts",
        find: "    const claim = await this.#read(claimName(systemId, externalId));",
        replace: "    const claim = undefined;",
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
    name: "tries again every two seconds",
    edits: [
      {
        file: "src/hypervisor/categories.ts",
        find: "  delaysMs: [30 * secondMs, minuteMs, 2 * minuteMs, 5 * minuteMs, 10 * minuteMs],",
        replace: "  delaysMs: [2_000],",
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
        find: 'return claim.everStood && !declared.isEdited && declared.driftPolicy !== "Correct";',
        replace: "return claim.everStood && !declared.isEdited;",
      },
    ],
  },
];

/** How things come to their end, and what has to stay. */
const endings: readonly Mutant[] = [
  {
    name: "lets the object go before its machine is",
    edits: [
      {
        file: `${controller}/plan-deletion.ts`,
        find: '  if (declared.isProtected) return { do: "protect" };',
        replace: '  if (!declared.isProtected) return { do: "finish", how: "Nothing" };',
      },
    ],
  },
  {
    name: "gives the id back before its machine is gone",
    edits: [
      {
        file: `${controller}/plan-deletion.ts`,
        find: '  if (declared.isProtected) return { do: "protect" };',
        replace: '  if (!declared.isProtected) return { do: "finish", how: "Retire" };',
      },
    ],
  },
  {
    name: "lets the object go while its hypervisor is away",
    edits: [
      {
        file: `${controller}/away.ts`,
        find: "if (isDeleting(turn.vm) && (await holdsNothing(turn))) return letGo(turn);",
        replace: "if (isDeleting(turn.vm)) return letGo(turn);",
      },
      {
        file: `${controller}/letting-go.ts`,
        find: '  if (turn.claim === undefined && !(await holdsNothing(turn))) return again("NotYet");\n',
        replace: "",
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
        find: '  const volumes = withLeftovers(claim, leftovers);\n  return volumes === undefined ? undefined : { do: "record", change: { volumes } };',
        replace: "  void withLeftovers(claim, leftovers);\n  return undefined;",
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
    name: "destroys what should be retained",
    edits: [
      {
        file: `${controller}/plan-deletion.ts`,
        find: 'if (declared.fate === "Retain") return',
        replace: 'if (declared.fate === "Retain" && claim.node === undefined) return',
      },
    ],
  },
  {
    name: "destroys the disks of a retained machine that is gone",
    step: "clear up by hand",
    edits: [
      {
        file: `${controller}/plan.ts`,
        find: 'const isAllKept = declared.fate === "Retain" && claim.everStood;',
        replace: "const isAllKept = false;",
      },
    ],
  },
  {
    name: "forgets the disks that a machine which is gone was to leave",
    step: "clear up by hand",
    edits: [
      {
        file: `${controller}/plan.ts`,
        find: 'const how = own.length > 0 ? "Release" : "Retire";',
        replace: 'const how = "Retire";',
      },
    ],
  },
  {
    name: "destroys a disk that should be retained",
    edits: [
      {
        file: `${controller}/plan-deletion.ts`,
        find: 'if (known?.disk !== undefined) return known.onDelete === "Delete";',
        replace: "if (known?.disk !== undefined) return true;",
      },
      {
        file: `${driver}/operations/destroy.ts`,
        find: 'return volumes.some(({ id, onDelete }) => id === volume && onDelete === "Retain");',
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
    name: "destroys machines because their kind goes away",
    step: "take the kinds away",
    edits: [
      {
        file: `${controller}/declare.ts`,
        find: 'return (await deps.mayDestroy()) ? "Destroy" : "Retain";',
        replace: 'return "Destroy";',
      },
    ],
  },
  {
    name: "makes a missing machine anew",
    edits: [
      {
        file: `${controller}/plan.ts`,
        find: 'if (claim.everStood && declared.onMissing !== "Recreate") {',
        replace: "if (false) {",
      },
    ],
  },
  {
    name: "does not write down that a machine stood",
    edits: [
      {
        file: `${controller}/plan-machine.ts`,
        find: "  if (!claim.everStood) {\n    const { madeFrom } = declared;",
        replace:
          "  if (!claim.everStood && claim.node === undefined) {\n    const { madeFrom } = declared;",
      },
    ],
  },
  {
    name: "makes another machine where somebody took its id",
    step: "recycle an id",
    edits: [
      {
        file: `${controller}/plan.ts`,
        find: '  if (claim.state !== "Reserved") return { do: "fail", failure };\n',
        replace: "",
      },
      {
        file: `${controller}/plan.ts`,
        find: 'return claim.idChosenBy === "Berth" && claim.state === "Reserved" && !claim.everStood;',
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
        find: "  if (!stood.ok) return stood.begun;\n  const { place } = stood.standing;",
        replace:
          "  if (!stood.ok) return stood.begun;\n  if ((globalThis.fallen ??= 0) === 0) globalThis.fallen += missing.length;\n  const { place } = stood.standing;",
      },
    ],
  },
  {
    name: "leaves a promise alone that is rejected",
    edits: [
      {
        file: `${driver}/operations/power.ts`,
        find: "  if (!stood.ok) return stood.begun;\n  const { place } = stood.standing;",
        replace:
          '  if (!stood.ok) return stood.begun;\n  void Promise.reject(new Error("boom"));\n  const { place } = stood.standing;',
      },
    ],
  },
];

/** Lines of the clean-up, which only histories with orphans.policy: DeleteOwned reach. */
const cleanUps: readonly Mutant[] = [
  {
    name: "deletes by policy what is not proven to be ours",
    step: "lose a Claim",
    edits: [
      {
        file: `${orphan}/policy.ts`,
        find: 'find.ownership === "Ours" && find.allowed',
        replace: "find.allowed",
      },
    ],
  },
  {
    name: "takes a Claim that only repeats a mark for a proof",
    step: "lose a Claim",
    edits: [
      {
        file: `${orphan}/plan.ts`,
        find: 'return state === "Reserved" && everStood ? "Marked" : "Ours";',
        replace: 'return state === "Quarantined" && everStood ? "Marked" : "Ours";',
      },
    ],
  },
  {
    name: "forgets a word to keep with the first look that does not show the thing",
    step: "keep and hide",
    edits: [
      {
        file: `${orphan}/decide.ts`,
        find: "return isLongAbsent ? ",
        replace: "return isLongAbsent || true ? ",
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

export const mutants: readonly Mutant[] = [...ownership, ...intents, ...endings, ...cleanUps];
