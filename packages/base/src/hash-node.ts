type NodeCrypto = typeof import('node:crypto')

let found: NodeCrypto | undefined
let searched = false

/** Node's own hashes, where the platform has them. */
export function nodeCrypto(): NodeCrypto | undefined {
  if (searched) return found
  searched = true
  if (typeof process !== 'undefined' && typeof process.getBuiltinModule === 'function') {
    found = process.getBuiltinModule('node:crypto')
  }
  return found
}
