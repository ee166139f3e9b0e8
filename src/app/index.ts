export { backupInstallation, restoreInstallation } from "./backup.ts";
export { startRemoteControllers } from "./controller.ts";
export { type ControlPlane, type ControlPlaneOptions, startControlPlane } from "./control-plane.ts";
export { type CreateDoctor, createDoctors, type ExaminedSpec } from "./doctors.ts";
export { connectInstallation, type Installation } from "./installation.ts";
export { folderFormat } from "./folder-format.ts";
export { startSimulator } from "./simulator.ts";
export { systemClock, systemRandom } from "./system.ts";
export { addUser, listUsers, removeUser, renewUser } from "./users.ts";
