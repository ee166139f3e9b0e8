import type { Orphan } from "../../api/index.ts";
import { type Call, type Command, CommandError, exitCodes, usageError } from "../command.ts";
import { type Person, systemPerson } from "../connect/person.ts";
import { serverOptions, withServer } from "../objects/connect.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import { asDocument, nameLine, readOutput } from "../objects/output.ts";
import {
  type Deciding,
  goneAdopted,
  goneUndestroyed,
  refuseUnless,
  waitForAll,
  writeDecision,
} from "../orphans/decide.ts";
import { named, readOrphans } from "../orphans/orphans.ts";
import { showRows, showWhole, totalText } from "../orphans/show.ts";

export const orphans: Command = {
  name: "orphans",
  summary: "show what nothing declares, and keep, adopt or destroy it",
  description:
    "Lists what was found on hypervisors and what nothing declares: machines, half-made ones, " +
    "volumes, discs, images, dead locks, each with whose it is, how large and how old; with an ID " +
    "also why it counts as that.\n\n" +
    "`destroy` shows what it would do and changes nothing, unless you type the id when asked, or " +
    "give --yes. What nobody can tell the owner of goes by its full id only. `adopt` makes a " +
    "VirtualMachine for a machine as it stands; `keep` leaves a thing and stops reporting it.",
  usage: "orphans [list|adopt|keep|destroy] [ID...] [--as NS/NAME] [--yes] [-o FORM]",
  options: {
    hypervisor: { type: "string", value: "NAME", description: "only what is on this Hypervisor" },
    as: {
      type: "string",
      value: "NS/NAME",
      description: "adopt: the VirtualMachine to make; without NS in the context's namespace",
    },
    yes: { type: "boolean", description: "destroy: do it, and do not ask" },
    wait: { type: "boolean", default: "true", description: "wait until it is done" },
    timeout: {
      type: "string",
      value: "DURATION",
      default: "5m",
      description: "how long to wait; 0 is for ever",
    },
    output: {
      type: "string",
      value: "FORM",
      short: "o",
      description: "list: table, json, yaml, name or jsonpath=TEMPLATE",
    },
    "no-headers": { type: "boolean", description: "no line with the names of the columns" },
    ...serverOptions,
  },
  arguments: ["list|adopt|keep|destroy?", "ORPHAN..."],
  examples: [
    "berth orphans",
    "berth orphans list local-zfs:vm-200-disk-0",
    "berth orphans destroy local-zfs:vm-200-disk-0",
    "berth orphans destroy local-zfs:vm-200-disk-0 local-zfs:vm-200-cloudinit --yes",
    "berth orphans adopt 1000104 --as default/web",
  ],
  run: (call) => runOrphans(call, systemMachine, systemPerson),
};

export async function runOrphans(call: Call, machine: Machine, person: Person): Promise<number> {
  const [action = "list", ...ids] = call.arguments;
  return withServer(call, machine, async (server) => {
    const read = await readOrphans(call, server);
    const deciding = { call, machine, server, orphans: read };
    switch (action) {
      case "list":
        return list(deciding, ids);
      case "keep":
        return keep(deciding, named(read, ids));
      case "adopt":
        return adopt(deciding, named(read, ids));
      case "destroy":
        return destroy(deciding, { ids, person });
      default:
        throw usageError(`there is no "orphans ${action}". Usage: berth ${orphans.usage}`);
    }
  });
}

function list(
  { call, machine, orphans: { kind, items } }: Deciding,
  ids: readonly string[],
): number {
  const output = readOutput(call.string("output"));
  const shown = ids.length === 0 ? items : named({ kind, items }, ids);
  // cast: an Orphan is an object of Kubernetes.
  const objects = shown as unknown as Parameters<typeof asDocument>[0];
  const nowMs = machine.clock.nowMs();
  if (output.form === "name") for (const one of objects) call.terminal.print(nameLine(kind, one));
  else if (output.form === "text") call.terminal.print(output.write(asDocument(objects, false)));
  else if (ids.length > 0) showWhole(call, shown, nowMs);
  else showRows(call, shown, nowMs);
  return exitCodes.ok;
}

async function keep(deciding: Deciding, chosen: readonly Orphan[]): Promise<number> {
  for (const orphan of chosen) {
    await writeDecision(deciding, orphan, { decision: "Keep" });
    deciding.call.terminal.print(`${orphan.spec.externalId}: kept`);
  }
  return exitCodes.ok;
}

async function adopt(deciding: Deciding, chosen: readonly Orphan[]): Promise<number> {
  const { call, server } = deciding;
  const [orphan, ...others] = chosen;
  const word = call.string("as");
  if (orphan === undefined || others.length > 0) throw usageError("adopt takes one ID at a time");
  if (word === undefined) throw usageError("say which object it becomes: --as NAMESPACE/NAME");
  refuseUnless(orphan, "Adopt");
  const { namespace, name } = adopterOf(word, server.namespace);
  await writeDecision(deciding, orphan, { decision: "Adopt", adoptAs: { namespace, name } });
  const code = await waitForAll(deciding, [orphan], () => {
    return goneAdopted(deciding, orphan, { namespace, name });
  });
  if (code === exitCodes.ok) call.terminal.note(`See berth why vm/${name} -n ${namespace}`);
  return code;
}

/** Exactly NAME or NAMESPACE/NAME: a word too many would make it another object. */
function adopterOf(word: string, current: string): { namespace: string; name: string } {
  const [namespace = "", name = "", ...more] = word.includes("/")
    ? word.split("/")
    : [current, word];
  if (namespace !== "" && name !== "" && more.length === 0) return { namespace, name };
  throw usageError(`--as ${word} is not NAMESPACE/NAME`);
}

async function destroy(
  deciding: Deciding,
  { ids, person }: { readonly ids: readonly string[]; readonly person: Person },
): Promise<number> {
  const { call, machine, orphans: read } = deciding;
  const chosen = named(read, ids);
  for (const orphan of chosen) refuseUnless(orphan, "Destroy");
  showWhole(call, chosen, machine.clock.nowMs());
  call.terminal.note(`To be destroyed, with all data: ${totalText(chosen)}`);
  const agreed = call.flag("yes") ? byTheirIds(chosen, ids) : await typed(chosen, person);
  if (agreed.length === 0) {
    call.terminal.note("Nothing was changed. To do it: the same with --yes.");
    return exitCodes.ok;
  }
  for (const orphan of agreed) await writeDecision(deciding, orphan, { decision: "Destroy" });
  return waitForAll(deciding, agreed, goneUndestroyed);
}

/** What is not provably ours has to be named by the id that it has on the hypervisor. */
function byTheirIds(chosen: readonly Orphan[], ids: readonly string[]): readonly Orphan[] {
  for (const { spec, status } of chosen) {
    if (status?.ownership === "Ours" || ids.includes(spec.externalId)) continue;
    throw new CommandError(
      `nobody can tell whose ${spec.externalId} is: to destroy it, give that id and not its name`,
    );
  }
  return chosen;
}

/** Those whose ids the person typed once more. Nobody there: none. */
async function typed(chosen: readonly Orphan[], person: Person): Promise<Orphan[]> {
  const agreed: Orphan[] = [];
  if (!person.isPresent) return agreed;
  for (const orphan of chosen) {
    const { externalId } = orphan.spec;
    const answer = await person.ask(`Type ${externalId} to destroy it: `);
    if (answer === externalId) agreed.push(orphan);
  }
  return agreed;
}
