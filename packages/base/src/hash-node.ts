type NodeCrypto = typeof import('node:crypto')

/** Node's own hash, where the platform has it (Node, Bun, Deno, Workers with compatibility). */
export function nodeCrypto(): NodeCrypto | undefined {
  if (typeof process === 'undefined' || typeof process.getBuiltinModule !== 'function')
    return undefined
  return process.getBuiltinModule('node:crypto')
}
