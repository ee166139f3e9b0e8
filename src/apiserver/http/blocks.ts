/**
 * Joins small pieces and cuts large ones, so that what is written at once is neither a syscall per
 * object nor a second's worth of encryption.
 */
export function* blocksOf(
  pieces: readonly Uint8Array[],
  blockBytes: number,
): Generator<Uint8Array, void, undefined> {
  let pending: Uint8Array[] = [];
  let pendingBytes = 0;
  for (const piece of pieces) {
    if (pendingBytes > 0 && pendingBytes + piece.length > blockBytes) {
      yield Buffer.concat(pending, pendingBytes);
      pending = [];
      pendingBytes = 0;
    }
    if (piece.length > blockBytes) yield* cut(piece, blockBytes);
    else {
      pending.push(piece);
      pendingBytes += piece.length;
    }
  }
  if (pendingBytes > 0) yield Buffer.concat(pending, pendingBytes);
}

function* cut(piece: Uint8Array, blockBytes: number): Generator<Uint8Array, void, undefined> {
  for (let start = 0; start < piece.length; start += blockBytes) {
    yield piece.subarray(start, start + blockBytes);
  }
}
