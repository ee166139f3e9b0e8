import { storeFormat } from "../store/index.ts";
import { dataFolder, isPresent } from "./data-folder.ts";

/** The format of a data folder and the newest that this program knows; undefined where none is. */
export function folderFormat(
  path: string,
): { readonly format: number; readonly newest: number } | undefined {
  const { database } = dataFolder(path);
  return isPresent(database) ? storeFormat(database) : undefined;
}
