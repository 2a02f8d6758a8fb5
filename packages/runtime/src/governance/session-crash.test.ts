import { describe, expect, test } from 'vitest'
import { kit, toolOf, undoBy, type Kit } from '../../test/governance/governed-kit.ts'
import { Mortal } from '../../test/governance/mortal.ts'
import { playKernel, tell, type Play, type Waiting } from '../../test/governance/play-kernel.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'

/** The world outside: what was done there stays done, whoever crashes. */
interface World {
  /** Idempotency keys of writes, one per run of the tool. */
  readonly runs: string[]
  undone: number
}

type Kind = 'probed' | 'plain' | 'idempotent'

function writeTool(world: World, risk: string, kind: Kind): ToolDefinition {
  const effects = (): number => new Set(world.runs).size - world.undone
  return toolOf('write', {
    risk,
    rollback: undoBy('write'),
    ...(kind === 'probed' && { probe: () => effects() > 0 }),
    ...(kind === 'idempotent' && { idempotent: true }),
  })
}

/** Lets the process die at step `at`, and others after it go on to the end, with people who answer. */
async function live(risk: string, kind: Kind, end: Play['end'], at: number) {
  const world: World = { runs: [], undone: 0 }
  const write = writeTool(world, risk, kind)
  // Running it again has no second effect, so that it may be run again.
  const undo = toolOf('undo_write', { risk: 'write_low_risk', idempotent: true })
  const read = toolOf('read')
  const made = await kit({ tools: [read, write, undo] })
  const calls = [
    { id: 'r', tool: read },
    { id: 'w', tool: write },
  ]
  const first = new Mortal(at)
  const told: Waiting['type'][] = []
  for (let drains = 0, mortal = first; drains < 10; drains++) {
    const ended = await Promise.race([
      playKernel(playOf({ made, mortal, calls, end, world })),
      mortal.died,
    ])
    if (ended === 'ended') return { made, world, told, isDead: mortal !== first, first }
    if (ended === 'died') mortal = new Mortal()
    else {
      told.push(ended.type)
      await answer(made, ended, world)
    }
  }
  throw new Error(`the session did not end (${risk} ${kind} ${end}, step ${at})`)
}

function playOf({
  made,
  mortal,
  calls,
  end,
  world,
}: Pick<Play, 'made' | 'mortal' | 'calls' | 'end'> & { world: World }): Play {
  return {
    made,
    mortal,
    calls,
    end,
    run: async ({ tool, idempotency_key }) => {
      if (tool !== 'write') return { balance: 1 }
      await mortal.step('in the tool, before its effect')
      world.runs.push(idempotency_key)
      await mortal.step('in the tool, after its effect')
      return { ok: true }
    },
    undo: async () => {
      await mortal.step('before the inverse')
      world.undone = 1
      await mortal.step('after the inverse')
    },
  }
}

/** A person approves, and says truthfully what became of a write. */
async function answer(made: Kit, waiting: Waiting, { runs }: World): Promise<void> {
  if (waiting.type === 'approval') {
    await tell(made, `token/${waiting.call}`, await made.sign(waiting.request))
  } else await tell(made, `answer/${waiting.call}`, runs.length > 0 ? 'applied' : 'absent')
}

const effectOf = async (made: Kit): Promise<unknown> =>
  (await made.entries()).findLast(
    ({ type, data }) => type === 'call_settled' && data['call'] === 'w',
  )?.data['effect']

describe.each(['deliver', 'fail'] as const)('a session that ends with %s', (end) => {
  test.each([
    ['write_high_risk', 'probed'],
    ['write_high_risk', 'plain'],
    ['write_high_risk', 'idempotent'],
    ['write_low_risk', 'probed'],
    ['write_low_risk', 'plain'],
    ['write_low_risk', 'idempotent'],
  ] as const)(
    'a crash at every step of a %s (%s) leaves one effect at most, and a log that verifies',
    async (risk, kind) => {
      const asked = new Set<string>()
      let at = 0
      for (; ; at++) {
        const { made, world, told, isDead, first } = await live(risk, kind, end, at)
        const where = `died ${first.steps.at(-1) ?? 'never'} (${at})`
        for (const type of told) asked.add(type)

        expect(new Set(world.runs).size, where).toBeLessThanOrEqual(1)
        if (kind !== 'idempotent') expect(world.runs.length, where).toBeLessThanOrEqual(1)
        // Only a low-risk write that nobody can look at may be lost; the log says that nobody knows.
        const effect = await effectOf(made)
        if (risk === 'write_low_risk' && kind === 'plain' && world.runs.length === 0) {
          expect(effect, where).toBe('in_doubt')
        } else expect(world.runs.length, where).toBeGreaterThan(0)
        // A write that nobody can look at is left to a person.
        if (end === 'fail') expect(world.undone, where).toBe(effect === 'in_doubt' ? 0 : 1)

        expect((await made.entries()).at(-1)?.type, where).toBe(
          end === 'deliver' ? 'delivered' : 'failed_safe',
        )
        expect(await made.verify(), where).toMatchObject({ ok: true, faults: [] })
        if (!isDead) break
      }
      expect(at).toBeGreaterThan(end === 'fail' ? 15 : 12)
      const isAsked = risk === 'write_high_risk' && kind === 'plain'
      expect(asked.has('in_doubt')).toBe(isAsked)
      expect(asked.has('approval')).toBe(risk === 'write_high_risk')
    },
  )
})

test('a person who does not know leaves the write in doubt, and it does not run again', async () => {
  const world: World = { runs: [], undone: 0 }
  const write = writeTool(world, 'write_high_risk', 'plain')
  const made = await kit({ tools: [write, toolOf('undo_write', { risk: 'write_low_risk' })] })
  const calls = [{ id: 'w', tool: write }]
  const play = (mortal: Mortal): Promise<unknown> =>
    Promise.race([playKernel(playOf({ made, mortal, calls, end: 'deliver', world })), mortal.died])
  const asked = (await play(new Mortal())) as Waiting
  await answer(made, asked, world)
  const steps = new Mortal()
  const dying = new Mortal(4)
  expect(await play(dying)).toBe('died')
  expect(dying.steps.at(-1)).toBe('in the tool, before its effect')
  expect(await play(steps)).toMatchObject({ type: 'in_doubt', call: 'w' })
  await tell(made, 'answer/w', 'unknown')
  expect(await play(new Mortal())).toBe('ended')
  expect(world.runs).toEqual([])
  expect(await effectOf(made)).toBe('in_doubt')
  expect(await made.verify()).toMatchObject({ ok: true })
})
