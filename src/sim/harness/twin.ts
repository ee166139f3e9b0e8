import { virtualMachineKind, vmImageKind, type VirtualMachine } from "../../api/index.ts";
import { isReady, mayWait } from "./readiness.ts";
import { differencesOf, shapeOf } from "./shape.ts";
import { nextTurn, passWhile } from "./turns.ts";
import { asError, Violation } from "./violation.ts";
import { webImage, webImageName } from "./web-images.ts";
import { World, type WorldOptions } from "./world.ts";

/** Nothing goes wrong there, so it takes a minute or two. */
const makeMs = 20 * 60_000;

/**
 * Law 8: what something has become does not depend on what it went through. The same declarations
 * are made once more, plainly, in a world in which nothing ever goes wrong; what then stands there
 * must be the same.
 */
export async function demandSameAsPlain(world: World, options: WorldOptions): Promise<void> {
  const all = [...world.records.vms.values()];
  const vms = all.filter((vm) => !mayWait(vm) && isMadeFor(world, vm));
  if (vms.length === 0) return;
  const plain = new World({ ...options, home: "embedded", listen: undefined });
  await makePlainly(plain, vms, world);
  if (plain.broken !== undefined) throw asError(plain.broken);
  for (const vm of vms) {
    const twin = [...plain.records.vms.values()].find(({ metadata }) => {
      return metadata.name === vm.metadata.name;
    });
    const [difference] = differencesOf(shapeIn(world, vm), shapeIn(plain, twin));
    if (difference === undefined) continue;
    throw new Violation(8, `${vm.metadata.name} is not as if it were made plainly: ${difference}`);
  }
}

/** What was taken over keeps what its object does not speak of. */
function isMadeFor({ sites }: World, { metadata, status }: VirtualMachine): boolean {
  const { hypervisor = "", externalId = "" } = status ?? {};
  return sites.get(hypervisor)?.creates.get(externalId) === metadata.uid;
}

async function makePlainly(
  plain: World,
  vms: readonly VirtualMachine[],
  { records }: World,
): Promise<void> {
  const until = (isOver: () => boolean): Promise<boolean> => passUntil(plain, isOver);
  await passWhile(plain.install(), until);
  plain.start(0);
  await passUntil(plain, () => plain.house.isOpen);
  for (const site of plain.sites.keys()) {
    if (!records.images.has(`default/${webImageName(site)}`)) continue;
    await passWhile(plain.client.of(vmImageKind).create(webImage(site)), until);
  }
  for (const { apiVersion, kind, metadata, spec } of vms) {
    const { namespace = "", name = "" } = metadata;
    const vm = { apiVersion, kind, metadata: { namespace, name }, spec };
    await passWhile(plain.client.of(virtualMachineKind).create(vm), until);
  }
  const areReady = (): boolean => [...plain.records.vms.values()].every(isReady);
  if (await passUntil(plain, areReady)) return;
  const stuck = [...plain.records.vms.values()].filter((vm) => !isReady(vm));
  throw new Violation(8, `made plainly it does not become Ready: ${JSON.stringify(stuck)}`);
}

function shapeIn({ sites }: World, vm: VirtualMachine | undefined): ReadonlyMap<string, string> {
  const { hypervisor = "", externalId = "" } = vm?.status ?? {};
  const site = sites.get(hypervisor);
  return shapeOf(site?.text(externalId) ?? "", site?.isRunning(externalId) ?? false);
}

async function passUntil(world: World, holds: () => boolean): Promise<boolean> {
  const { clock } = world;
  const endMs = clock.monotonicMs() + makeMs;
  for (;;) {
    await nextTurn();
    world.guard(() => world.laws.atEveryEvent());
    if (holds()) return true;
    const nextMs = clock.nextInMs();
    if (nextMs === undefined || clock.monotonicMs() + nextMs > endMs) return false;
    clock.advance(nextMs);
  }
}
