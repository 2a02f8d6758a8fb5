/**
 * What runs before a test file in which mutants are planted: the switch that the planted code asks. With
 * SKEIN_MUTANT=file#id that mutant is on. Without it, all are off, and the ones that the tests reach are written to
 * the folder SKEIN_MUTANTS_REACHED; loading modules does not count.
 */
import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'

const [activeFile, activeId] = (process.env['SKEIN_MUTANT'] ?? '').split('#')
const reachedFolder = process.env['SKEIN_MUTANTS_REACHED']
const active = Number(activeId)
const reached = new Map<string, Set<number>>()

// Tests replace the clock; this one keeps the real one.
const now = performance.now.bind(performance)
const limitMs = Number(process.env['SKEIN_MUTANT_MS'] ?? Infinity)
const deadline = now() + limitMs
let rounds = 0

Object.assign(globalThis, {
  __skeinMutant(file: string, id: number): boolean {
    if (id === 0) {
      if (++rounds % 1024 === 0 && now() > deadline)
        throw new Error(`A loop in ${file} still runs after ${limitMs} ms.`)
      return false
    }
    if (reachedFolder === undefined) return id === active && file === activeFile
    let ids = reached.get(file)
    if (ids === undefined) reached.set(file, (ids = new Set()))
    ids.add(id)
    return false
  },
})

if (reachedFolder !== undefined) {
  beforeAll(() => reached.clear())
  afterAll(() => {
    const mutants = [...reached].flatMap(([file, ids]) => [...ids].map((id) => `${file}#${id}`))
    mkdirSync(reachedFolder, { recursive: true })
    writeFileSync(
      join(reachedFolder, `${randomUUID()}.json`),
      JSON.stringify({ testFile: expect.getState().testPath, mutants }),
    )
  })
}
