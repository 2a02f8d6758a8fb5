import { expect, test } from 'vitest'
import fc from 'fast-check'
import {
  CompactRange,
  emptyRoot,
  leafHash,
  nodeHash,
  proveConsistency,
  proveInclusion,
  type TreeHash,
  verifyConsistency,
  verifyInclusion,
} from './merkle.ts'

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

// The leaves and roots that Certificate Transparency implementations test with.
const knownLeaves = [
  '',
  '00',
  '10',
  '2021',
  '3031',
  '40414243',
  '5051525354555657',
  '606162636465666768696a6b6c6d6e6f',
]
const knownRoots = [
  'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
  'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
  'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
  'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
  '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
  'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
  '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
]

function leaves(count: number): TreeHash[] {
  return Array.from({ length: count }, (_, index) => leafHash(`leaf ${index}`))
}

function rootOf(hashes: readonly TreeHash[]): TreeHash {
  const range = new CompactRange()
  for (const hash of hashes) range.append(hash)
  return range.root()
}

/** The definition of RFC 6962 §2.1, word for word. */
function naiveRoot(hashes: readonly TreeHash[]): TreeHash {
  if (hashes.length === 0) return emptyRoot()
  if (hashes.length === 1) return hashes[0]!
  let k = 1
  while (k * 2 < hashes.length) k *= 2
  return nodeHash(naiveRoot(hashes.slice(0, k)), naiveRoot(hashes.slice(k)))
}

test('roots of the trees that other implementations test with', () => {
  const range = new CompactRange()
  expect(hex(range.root())).toBe(knownRoots[0])
  for (const [index, leaf] of knownLeaves.entries()) {
    range.append(leafHash(Buffer.from(leaf, 'hex')))
    expect(hex(range.root())).toBe(knownRoots[index + 1])
  }
})

test('a leaf of 64 bytes does not hash like the node of its halves', () => {
  const [a, b] = leaves(2) as [TreeHash, TreeHash]
  expect(leafHash(new Uint8Array([...a, ...b]))).not.toEqual(nodeHash(a, b))
})

test('known proofs of the tree of eight leaves', async () => {
  const hashes = knownLeaves.map((leaf) => leafHash(Buffer.from(leaf, 'hex')))
  expect((await proveInclusion(hashes, 0, 8)).map(hex)).toEqual([
    '96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7',
    '5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e',
    '6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4',
  ])
  expect((await proveConsistency(hashes, 6, 8)).map(hex)).toEqual([
    '0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a',
    'ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
  ])
})

test('the compact range has the root of the definition, and goes on from its peaks', () => {
  for (let count = 0; count <= 66; count++) {
    const hashes = leaves(count)
    const half = new CompactRange()
    for (const hash of hashes.slice(0, count >> 1)) half.append(hash)
    const rest = new CompactRange(half.size, half.peaks)
    for (const hash of hashes.slice(count >> 1)) rest.append(hash)
    expect(rest.root()).toEqual(naiveRoot(hashes))
    expect(rest.peaks.length).toBeLessThanOrEqual(7)
  }
})

test('every leaf of every small tree proves its place, and no other', async () => {
  for (let size = 1; size <= 33; size++) {
    const hashes = leaves(size)
    const root = rootOf(hashes)
    for (let index = 0; index < size; index++) {
      const proof = await proveInclusion(hashes, index, size)
      const claim = { leaf: hashes[index]!, index, size, root, proof }
      expect(verifyInclusion(claim)).toBe(true)
      expect(verifyInclusion({ ...claim, index: (index + 1) % size }) && size > 1).toBe(false)
      expect(verifyInclusion({ ...claim, leaf: leafHash('other') })).toBe(false)
      expect(verifyInclusion({ ...claim, proof: [...proof, root] })).toBe(false)
      if (proof.length > 0) expect(verifyInclusion({ ...claim, proof: proof.slice(1) })).toBe(false)
    }
  }
})

test('every growth between small trees proves itself, and no other', async () => {
  const hashes = leaves(33)
  for (let second = 0; second <= 33; second++) {
    for (let first = 0; first <= second; first++) {
      const proof = await proveConsistency(hashes.slice(0, second), first, second)
      const firstRoot = rootOf(hashes.slice(0, first))
      const secondRoot = rootOf(hashes.slice(0, second))
      const claim = { first, second, firstRoot, secondRoot, proof }
      expect(verifyConsistency(claim)).toBe(true)
      const other = leafHash('other')
      expect(verifyConsistency({ ...claim, firstRoot: other })).toBe(false)
      if (first > 0) expect(verifyConsistency({ ...claim, secondRoot: other })).toBe(false)
      expect(verifyConsistency({ ...claim, proof: [...proof, other] })).toBe(false)
    }
  }
})

test('a proof with any hash changed is refused; at a million entries it has twenty hashes', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 2, max: 300 }),
      fc.nat(),
      fc.nat(),
      async (size, at, which) => {
        const hashes = leaves(size)
        const index = at % size
        const proof = await proveInclusion(hashes, index, size)
        const changed = proof.map((hash, i) => (i === which % proof.length ? leafHash(hash) : hash))
        const claim = { leaf: hashes[index]!, index, size, root: rootOf(hashes) }
        expect(verifyInclusion({ ...claim, proof })).toBe(true)
        expect(verifyInclusion({ ...claim, proof: changed })).toBe(false)
      },
    ),
    { seed: 6962, numRuns: 100 },
  )
  const one = leafHash('same')
  const million = {
    *[Symbol.iterator]() {
      for (let i = 0; i < 1_000_000; i++) yield one
    },
  }
  if (process.env['SKEIN_DEEP'])
    expect(await proveInclusion(million, 5, 1_000_000)).toHaveLength(20)
})

test('UAICP-35 no index outside the tree is proved to be in it', () => {
  const leaf = leafHash('only')
  const claim = { leaf, index: 0, size: 1, root: leaf, proof: [] }
  expect(verifyInclusion(claim)).toBe(true)
  for (const index of [1, 2, -1, 0.5, Number.NaN])
    expect(verifyInclusion({ ...claim, index }), `${index}`).toBe(false)
  expect(verifyInclusion({ ...claim, size: 0 })).toBe(false)
})
