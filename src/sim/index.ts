export { seededRandom } from "./seeded-random.ts";
export {
  ConnectionLost,
  ConnectionRefused,
  isRelease,
  nearestRelease,
  ProxmoxModel,
  releases,
  smallCluster,
  startProxmoxSimulator,
  tokenName,
  tokenUser,
  twinOf,
} from "./proxmox/index.ts";
export type {
  ApiRequest,
  ApiResponse,
  ClusterState,
  ModelOptions,
  Release,
  RequestFault,
  Simulator,
  SimulatorOptions,
  StepFault,
  Timing,
  WorldOptions,
} from "./proxmox/index.ts";
