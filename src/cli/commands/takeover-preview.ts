import { annotations } from "../../api/index.ts";
import type { Hypervisor, VirtualMachine } from "../../api/index.ts";

type PlannedStep = NonNullable<NonNullable<VirtualMachine["status"]>["plannedSteps"]>[number];
type Effect = PlannedStep["effect"];

/** As many VMs are shown of each: whoever has more of them pages through their statuses. */
const shownMax = 50;

/** What harms a guest or its data comes first. */
const effects: readonly { readonly effect: Effect; readonly says: string }[] = [
  { effect: "Delete", says: "will be deleted" },
  { effect: "Release", says: "will be released, and stay on the hypervisor" },
  { effect: "Restart", says: "will be restarted" },
  { effect: "Stop", says: "will be shut down" },
  { effect: "Start", says: "will be started" },
  { effect: "Change", says: "will be changed" },
  { effect: "Create", says: "will be created" },
  { effect: "Adopt", says: "will be taken over as they are" },
];

/** One VM, and what is said of it. */
interface Row {
  readonly vm: VirtualMachine;
  readonly text: string;
}

/**
 * What happens as soon as this copy acts, by what its controllers observed and planned: see
 * status.plannedSteps. A generation tells nothing of what the other copy has changed since.
 */
export function describePlanned(hypervisor: Hypervisor, vms: readonly VirtualMachine[]): string[] {
  const here = vms.filter(({ spec, status }) => {
    return (status?.hypervisor ?? spec.hypervisorRef.name) === hypervisor.metadata.name;
  });
  const outlooks = here.map((vm) => ({ vm, outlook: outlookOf(vm) }));
  const lines = effects.flatMap(({ effect, says }) => {
    const rows = outlooks.flatMap(({ vm, outlook }): Row[] => {
      const steps = outlook.is === "planned" ? outlook.steps : [];
      return steps
        .filter((step) => step.effect === effect)
        .map(({ intent: text }) => ({ vm, text }));
    });
    return section(says, rows);
  });
  const blocked = outlooks.flatMap(({ vm, outlook }): Row[] => {
    return outlook.is === "blocked" ? [{ vm, text: outlook.why }] : [];
  });
  const unobserved = outlooks.filter(({ outlook }) => outlook.is === "unobserved");
  return [
    ...lines,
    ...(lines.length === 0 ? ["  nothing is planned that changes a VM"] : []),
    ...section("will not be touched until what is said here is fixed", blocked),
    ...section(
      "not observed by this copy yet, so nobody knows what will be done (run this again later)",
      unobserved.map(({ vm }) => ({ vm, text: "" })),
    ),
  ];
}

type Outlook =
  | { readonly is: "planned"; readonly steps: readonly PlannedStep[] }
  | { readonly is: "blocked"; readonly why: string }
  | { readonly is: "unobserved" }
  | { readonly is: "inSync" };

function outlookOf(vm: VirtualMachine): Outlook {
  if (vm.metadata.annotations?.[annotations.paused] === "true") {
    return { is: "blocked", why: "it is paused (berth resume)" };
  }
  const steps = plannedOf(vm);
  if (steps === undefined) return { is: "unobserved" };
  const obstacle = steps.find(({ blockedBy }) => blockedBy !== undefined)?.blockedBy;
  if (steps.length > 0 && obstacle === undefined) return { is: "planned", steps };
  const why = obstacle ?? troubleOf(vm);
  return why === undefined ? { is: "inSync" } : { is: "blocked", why };
}

/** Undefined where this copy has not observed the VM, or not since it was edited. */
function plannedOf({ metadata, status }: VirtualMachine): readonly PlannedStep[] | undefined {
  const isOld = (status?.observedGeneration ?? 0) < (metadata.generation ?? 0);
  return isOld ? undefined : status?.plannedSteps;
}

/** Why nothing is planned for it although it is not as declared. */
function troubleOf({ status }: VirtualMachine): string | undefined {
  const { failure, waitingFor, conditions = [] } = status ?? {};
  if (failure !== undefined) return `${failure.category}: ${failure.message}`;
  if (waitingFor !== undefined) return `it waits for ${waitingFor.name}`;
  const stalled = conditions.find(({ type, status: is }) => type === "Ready" && is === "False");
  return stalled && `${stalled.reason}: ${stalled.message}`;
}

function section(says: string, rows: readonly Row[]): string[] {
  if (rows.length === 0) return [];
  const more = rows.length - shownMax;
  const shown = rows.slice(0, shownMax).map(({ vm, text }) => {
    return `    ${nameWithId(vm)}${text === "" ? "" : `: ${text}`}`;
  });
  return [
    `  ${rows.length} ${rows.length === 1 ? "VM" : "VMs"} ${says}:`,
    ...shown,
    ...(more > 0 ? [`    and ${more} more: see status.plannedSteps of each`] : []),
  ];
}

/** With its id on the hypervisor, once it has one: that is what is changed there. */
function nameWithId({ metadata, status }: VirtualMachine): string {
  const name = `${metadata.namespace ?? ""}/${metadata.name ?? ""}`;
  const { externalId, node } = status ?? {};
  if (externalId === undefined) return name;
  return `${name} (id ${externalId}${node === undefined ? "" : ` on ${node}`})`;
}
