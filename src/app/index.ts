export { backupInstallation, restoreInstallation } from "./backup.ts";
export { startRemoteControllers } from "./controller.ts";
export { type ControlPlane, type ControlPlaneOptions, startControlPlane } from "./control-plane.ts";
export { connectInstallation, type Installation } from "./installation.ts";
export { startSimulator } from "./simulator.ts";
export { systemClock, systemRandom } from "./system.ts";
export { addUser, listUsers, removeUser, renewUser } from "./users.ts";
