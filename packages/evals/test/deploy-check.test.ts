import { mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ScriptedModel } from '@skein/ai/testing'
import { deployCheck, deployMarkdown, deployText } from '@skein/evals'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Store } from '@skein/runtime'
import { countOf } from '../../../conformance/support/counts.ts'
import {
  AGENTS,
  bookingModel,
  type DeskChange,
  deskRegistry,
  effectsIn,
  recordThreads,
} from './recorded-support.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-deploy-'))
const world = join(folder, 'world')
const each = countOf({ fast: 6, all: 40, deep: 167 })
const count = each * AGENTS.length
let store: Store

beforeAll(async () => {
  store = await recordThreads(world, count)
}, 600_000)
afterAll(() => rm(folder, { recursive: true }))

/** New definitions, and the models that they would ask. */
function next(change: DeskChange) {
  const models: ScriptedModel[] = []
  const registry = deskRegistry(
    world,
    (agent) => {
      const model = bookingModel(agent)
      models.push(model)
      return model
    },
    change,
  )
  const sent = (): number => models.reduce((sum, { requests }) => sum + requests.length, 0)
  return { registry, sent }
}

test(
  'unchanged definitions: every thread is the same, no request is sent and no tool runs',
  { timeout: 600_000 },
  async () => {
    const before = effectsIn(world)
    expect(before).toBe(count)
    const { registry, sent } = next({})
    const report = await deployCheck({ store, registry, last: count })
    expect(report).toMatchObject({ threads: count, same: count, groups: [], unchecked: 0 })
    expect(report.requests).toEqual({ recorded: count * 3, sent: 0 })
    expect(sent()).toBe(0)
    expect(effectsIn(world)).toBe(before)
  },
)

test(
  'each planted change is found and grouped, and no tool runs',
  { timeout: 600_000 },
  async () => {
    const before = effectsIn(world)
    const other = bookingModel('model', 'other')
    const { registry, sent } = next({
      instructions: 'You are brief.',
      schema: true,
      risk: 'write_high_risk',
      transform: true,
      model: other,
    })
    const report = await deployCheck({ store, registry, last: count })
    const found = report.groups.map(({ kind, summary, count: threads }) => [kind, summary, threads])
    expect(found.toSorted()).toEqual([
      ['arguments', '"arguments_book" reads its arguments differently', each],
      ['asks_approval', '"risk_book" asks a person', each],
      ['instructions', 'instructions of prompt', each],
      ['model', 'model: scripted/script became scripted/other', each],
      ['tools', 'tools: schema_book', each],
    ])
    expect(report.same).toBe(each)
    // Three requests of each thread of `prompt`, `schema` and `model`.
    expect(report.requests.sent).toBe(each * 9)
    expect(sent() + other.requests.length).toBe(each * 9)
    expect(effectsIn(world)).toBe(before)
    expect(deployText(report)).toContain(`${count} threads: ${each} the same, ${each * 5} differ`)
    expect(deployMarkdown(report)).toContain('| would now ask for approval |')
  },
)

test(
  'a call that waited for a person: the same without a change, and a group when it no longer asks',
  { timeout: 600_000 },
  async () => {
    const asked = await recordThreads(world, 3, {
      agents: ['risk'],
      change: { risk: 'write_high_risk' },
    })
    const before = effectsIn(world)
    const same = next({ risk: 'write_high_risk' })
    expect(await deployCheck({ store: asked, registry: same.registry })).toMatchObject({
      threads: 3,
      same: 3,
    })
    const { registry, sent } = next({ risk: 'write_low_risk' })
    const report = await deployCheck({ store: asked, registry })
    expect(report.groups).toMatchObject([
      { kind: 'asks_no_approval', summary: '"risk_book" asks no person', count: 3 },
    ])
    expect(sent() + same.sent()).toBe(0)
    expect(effectsIn(world)).toBe(before)
  },
)

test(
  'a check that ends in the middle continues, and pays for no answer twice',
  { timeout: 600_000 },
  async () => {
    const progress = join(folder, 'progress.jsonl')
    const change = { instructions: 'You are brief.' }
    const first = next(change)
    const stop = new AbortController()
    let done = 0
    await deployCheck({
      store,
      registry: first.registry,
      last: count,
      progress,
      concurrency: 1,
      signal: stop.signal,
      onThread: ({ requests }) => {
        if (requests.sent > 0 && ++done === 2) stop.abort()
      },
    })
    const second = next(change)
    const report = await deployCheck({ store, registry: second.registry, last: count, progress })
    expect(report).toMatchObject({ threads: count, same: count - each, unchecked: 0 })
    expect(first.sent()).toBeGreaterThan(0)
    expect(first.sent() + second.sent()).toBe(each * 3)
    const third = next(change)
    await deployCheck({ store, registry: third.registry, last: count, progress })
    expect(third.sent()).toBe(0)
    await expect(
      deployCheck({ store, registry: next({ schema: true }).registry, last: count, progress }),
    ).rejects.toMatchObject({ code: 'INPUT_INVALID' })
    expect(readFileSync(progress, 'utf8').trim().split('\n')).toHaveLength(1 + count + each * 3)
  },
)

test('a budget leaves the rest at their first difference', { timeout: 600_000 }, async () => {
  const { registry, sent } = next({ instructions: 'You are brief.' })
  const report = await deployCheck({ store, registry, last: count, maxRequests: 3, concurrency: 1 })
  expect(sent()).toBe(3)
  expect(report).toMatchObject({ same: count - each, cut: each - 1, unchecked: 0 })
  expect(report.groups).toMatchObject([{ kind: 'instructions', count: each }])
})
