type NodeCrypto = typeof import('node:crypto')

let found: NodeCrypto | undefined
let searched = false

/** Returns the `node:crypto` module, or undefined on platforms that do not have it. */
export function nodeCrypto(): NodeCrypto | undefined {
  if (searched) return found
  searched = true
  if (typeof process !== 'undefined' && typeof process.getBuiltinModule === 'function') {
    found = process.getBuiltinModule('node:crypto')
  }
  return found
}
