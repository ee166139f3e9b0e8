/** A safety line, broken on purpose. The histories must notice, or they prove nothing. */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  /** The line as it is; it must occur once, so that a change of the code is noticed here. */
  readonly find: string;
  readonly replace: string;
}

export const mutants: readonly Mutant[] = [
  {
    name: "takes a stranger's machine for its own",
    file: "src/drivers/proxmox/identity.ts",
    find: 'return reason === undefined ? { is: "ours", mark } : { is: "foreign", ...reason };',
    replace: 'return { is: "ours", mark };',
  },
  {
    name: "takes a machine without a mark for its own",
    file: "src/drivers/proxmox/identity.ts",
    find: "if (mark === undefined) return unmarked(identity === claim.identity, isBroken);",
    replace:
      'if (mark === undefined) return { is: "ours", mark: { ...claim, state: "Owned", disks: {}, networks: {} } };',
  },
  {
    name: "acts before the intent is written",
    file: "src/controllers/virtual-machine/effects.ts",
    find: '  await writeView(turn, {\n    state: { is: "working", reason, message: step.intent },\n    operation,',
    replace:
      '  void writeView(turn, {\n    state: { is: "working", reason, message: step.intent },\n    operation,',
  },
  {
    name: "takes what cannot be seen for absent",
    file: "src/controllers/virtual-machine/plan.ts",
    find: '    case "unknown":\n      return { do: "fail", failure: seen.failure };',
    replace: '    case "unknown":\n      return planVmAbsent(input, claim);',
  },
  {
    name: "lets the object go before its volumes are",
    file: "src/controllers/virtual-machine/plan.ts",
    find: '  if (leftovers === undefined) return { do: "sweep" };\n  const kept =',
    replace:
      '  if (leftovers === undefined) return { do: "finish", how: "Retire" };\n  const kept =',
  },
  {
    name: "does not write down what a failed step left",
    file: "src/controllers/virtual-machine/plan-deletion.ts",
    find: '  const volumes = withLeftovers(claim, leftovers);\n  return volumes === undefined ? undefined : { do: "record", change: { volumes } };',
    replace: "  void withLeftovers(claim, leftovers);\n  return undefined;",
  },
  {
    name: "destroys what should be retained",
    file: "src/controllers/virtual-machine/plan-deletion.ts",
    find: 'if (declared.fate === "Retain") return',
    replace: 'if (declared.fate === "Retain" && claim.node === undefined) return',
  },
  {
    name: "calls a machine Ready whatever its power",
    file: "src/controllers/virtual-machine/status.ts",
    find: "return isWhole && seen.machine.power === vm.spec.powerState;",
    replace: "return isWhole;",
  },
  {
    name: "acknowledges a write before it is durable",
    file: "src/store/open-store.ts",
    find: "      await this.#options.journal.append(batch);",
    replace: "      void this.#options.journal.append(batch).catch(() => undefined);",
  },
  {
    name: "forgets an empty reservation that may be its own",
    file: "src/controllers/virtual-machine/plan.ts",
    find: 'leaves: isHusk ? "Husk" : "Nothing"',
    replace: 'leaves: "Nothing"',
  },
  {
    name: "gives up a failed creation for good at once",
    file: "src/hypervisor/categories.ts",
    find: "  CreationFailed: fewTimes,",
    replace: "  CreationFailed: stalling,",
  },
  {
    name: "leaves drift as it is",
    file: "src/controllers/virtual-machine/plan-machine.ts",
    find: 'return claim.everStood && !declared.isEdited && declared.driftPolicy !== "Correct";',
    replace: "return claim.everStood && !declared.isEdited;",
  },
];
