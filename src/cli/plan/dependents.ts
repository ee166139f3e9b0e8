import type { VirtualMachine } from "../../api/index.ts";
import { jsonEqual } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { listObjects } from "../objects/read-objects.ts";
import type { Run } from "./prospect.ts";

/** An object that is there and would be stored otherwise. */
export interface Edited {
  readonly before: KubeObject | undefined;
  readonly after: KubeObject;
}

/** How a VirtualMachine refers to what gives it a part of its form. */
const references: Readonly<Record<string, (vm: VirtualMachine) => readonly string[]>> = {
  VMClass: ({ spec }) => (spec.classRef === undefined ? [] : [spec.classRef.name]),
  VMNetwork: ({ spec }) => (spec.networks ?? []).flatMap((card) => card.networkRef?.name ?? []),
};

/** Machines that take a part of their form from this object, if it is such a one and changes. */
export async function dependentsOf(
  { server, served }: Pick<Run, "server" | "served">,
  { before, after }: Edited,
): Promise<KubeObject[]> {
  const namesIn = references[after.kind];
  const isSame = jsonEqual(before?.["spec"] ?? null, after["spec"] ?? null);
  const kind = served.find((candidate) => candidate.kind === "VirtualMachine");
  if (namesIn === undefined || before === undefined || isSame || kind === undefined) return [];
  const { name = "", namespace } = after.metadata;
  const { items } = await listObjects(server, { kind, namespace });
  return items.filter((item) => {
    const isGoing = item.metadata.deletionTimestamp !== undefined;
    // cast: the server admitted it by the schema of its kind.
    return !isGoing && namesIn(item as unknown as VirtualMachine).includes(name);
  });
}
