/** Who holds the slots of an operation: unique among all kinds. A VM holds them by its key. */
export const holders = {
  orphan: (name: string): string => `orphan ${name}`,
  copy: (image: string, place: string): string => `image ${image} at ${place}`,
} as const;
