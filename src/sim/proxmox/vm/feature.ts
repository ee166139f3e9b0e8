import { type Call, vmidOf } from "../endpoint.ts";
import { parseVolumeId } from "../storage/names.ts";
import { type Feature, hasFeature } from "../storage/features.ts";
import { findVolume, isOnNode, isShared, storageConfig } from "../storage/storages.ts";
import { drivesOf, isCdrom } from "./drive.ts";
import { snapshotOf } from "./rollback.ts";

/** GET …/feature: whether all disks can be snapshotted, cloned or copied, and on which nodes. */
export function readFeature(call: Call): unknown {
  const { cluster, node, parameters } = call;
  const config = cluster.readGuest(node, vmidOf(call));
  const { snapname: snapshot } = parameters;
  const section = snapshot === undefined ? config.main : snapshotOf(config, snapshot);
  const feature = featureOf(parameters["feature"] ?? "");
  const drives = drivesOf(section).filter(([, drive]) => {
    return !isCdrom(drive) && drive.file.includes(":");
  });
  const isPossible = drives.every(([, drive]) => {
    const { storage, volume } = findVolume(cluster, node, drive.file);
    return volume !== undefined && hasFeature(storage, volume, { feature, snapshot });
  });
  const storages = drives.map(([, drive]) => {
    return storageConfig(cluster, parseVolumeId(drive.file).storage);
  });
  const nodes = cluster.state.nodes.filter(({ name }) => {
    return storages.every((storage) => {
      return isShared(storage) ? isOnNode(storage, name) : name === node;
    });
  });
  return { hasFeature: isPossible ? 1 : 0, nodes: nodes.map(({ name }) => name) };
}

function featureOf(text: string): Feature {
  return text === "clone" || text === "copy" ? text : "snapshot";
}
