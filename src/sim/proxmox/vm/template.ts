import { copyConfig } from "../config-file.ts";
import { type Call, demandUnlocked, fork, guestLock, vmidOf } from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { makeBase } from "../storage/operations.ts";
import { drivesOf, isCdrom, printDrive } from "./drive.ts";

/** POST …/template: for good. */
export function* makeTemplate(call: Call): Process<unknown> {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  yield* cluster.step("template request");
  return yield* locked(guestLock(node, vmid), function* () {
    demandConvertible(call);
    yield* cluster.step("fork");
    return fork(call, { type: "qmtemplate" }, () => {
      return locked(guestLock(node, vmid), () => convert(call));
    });
  });
}

function demandConvertible({ cluster, node, parameters }: Call): void {
  const vmid = Number(parameters["vmid"]);
  const config = cluster.readGuest(node, vmid);
  demandUnlocked(config);
  if (config.snapshots.size > 0) {
    throw new PveError("unable to create template, because VM contains snapshots");
  }
  if (config.main.get("template") === "1") {
    throw new PveError("you can't convert a template to a template");
  }
  if (cluster.isRunning(node, vmid)) {
    throw new PveError("you can't convert a VM to template if VM is running");
  }
}

function* convert({ cluster, node, parameters }: Call): Process<void> {
  const vmid = Number(parameters["vmid"]);
  const config = copyConfig(cluster.readGuest(node, vmid));
  config.main.set("template", "1");
  cluster.writeGuest(node, vmid, config);
  for (const [key, drive] of drivesOf(config.main)) {
    const isAsked = parameters["disk"] === undefined || parameters["disk"] === key;
    if (!isAsked || isCdrom(drive)) continue;
    yield* cluster.step(`convert ${key}`);
    const file = makeBase(cluster, node, drive.file);
    config.main.set(key, printDrive({ ...drive, file }));
    cluster.writeGuest(node, vmid, config);
  }
}
