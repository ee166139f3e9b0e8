import type { Hypervisor } from "../../api/index.ts";
import { observeOnlyOf, settleEpoch } from "./epoch.ts";
import { planIdentity } from "./plan.ts";
import { sessionOf, systemOf, untroubled, type HypervisorDeps } from "./reconcile.ts";
import { usableSecrets } from "./secrets.ts";

/**
 * Connects a hypervisor and looks at it whole, as its first tick does, by reads only. Where that
 * cannot be, nobody is told why: the tick does that.
 */
export async function reconnect(hypervisor: Hypervisor, deps: HypervisorDeps): Promise<void> {
  const { spec } = hypervisor;
  const { name = "" } = hypervisor.metadata;
  const secrets = await usableSecrets(deps.client, hypervisor);
  if ("trouble" in secrets) return;
  const session = sessionOf(hypervisor, deps, secrets);
  const system = await systemOf(session, deps);
  if (!system.ok) return;
  const { systemId, capabilities } = system.value;
  if (spec.systemId !== systemId) return;
  if (planIdentity(hypervisor, systemId, deps.hypervisors.list()) !== undefined) return;
  const inventory = await session.driver.inventory();
  if (!inventory.ok) return;
  Object.assign(session, untroubled);
  // The epoch of this very run is on the hypervisor already: it is only read again.
  const sight = { driver: session.driver, inventory: inventory.value, systemId };
  session.epoch = await settleEpoch(hypervisor, deps, { ...sight, old: undefined });
  const { shared: driver } = session;
  const observeOnly = observeOnlyOf(session.epoch.standing);
  const known = { name, systemId, driver, spec, capabilities, observeOnly };
  const connection = { ...known, inventory: inventory.value };
  deps.connections.restore(name, { is: "ready", connection });
}
