import { expect, test } from 'vitest'
import {
  governed,
  governor,
  standardPolicy,
  type GovernorOptions,
  type Result,
  type Run,
} from '../../src/index.ts'
import { init, kit, taskOf, type Kit } from '../support/kit.ts'

/** A process that dies at its n-th point of waiting: what waits there, or later, never goes on. */
class Mortal {
  readonly died: Promise<void>
  points = 0
  #die: () => void = () => undefined
  readonly #at: number

  constructor(at: number) {
    this.#at = at
    this.died = new Promise((resolve) => (this.#die = resolve))
  }

  async point(): Promise<void> {
    if (this.points++ < this.#at) return
    this.#die()
    await new Promise(() => undefined)
  }

  /** Two points around everything the function waits for. */
  around<Args extends unknown[], T>(work: (...args: Args) => T | Promise<T>) {
    return async (...args: Args): Promise<T> => {
      await this.point()
      const result = await work(...args)
      await this.point()
      return result
    }
  }
}

interface Outside {
  applied: number
  undone: number
}

function world(outside: Outside, mortal: Mortal, hasProbe: boolean) {
  const plain = (name: string, run: () => unknown) => ({
    name,
    description: name,
    parameters: {},
    run: mortal.around(async (_args: { n: number }) => {
      await mortal.point()
      return run() as null
    }),
  })
  const high = governed(
    plain('high', () => {
      outside.applied += 1
      return null
    }),
    {
      risk: 'write_high_risk',
      rollback: mortal.around((args) => ({ type: 'tool_call', target: 'undo', payload: args })),
      ...(hasProbe && { probe: mortal.around(() => outside.applied > outside.undone) }),
    },
  )
  const undo = governed(
    plain('undo', () => {
      outside.undone += 1
      return null
    }),
    { risk: 'write_low_risk' },
  )
  return { high, task: taskOf({ tools: [high, undo] }) }
}

function mortalOptions(made: Kit, mortal: Mortal): GovernorOptions {
  const { options, log, payloads } = made
  return {
    ...options,
    audit: {
      read: (read) => log.read(read),
      append: mortal.around((entry, append) => log.append(entry, append)),
      seal: mortal.around(() => log.seal()),
    },
    payloads: {
      put: mortal.around((hash, text) => payloads.put(hash, text)),
      get: mortal.around((hash) => payloads.get(hash)),
    },
    policy: { ...standardPolicy, decide: mortal.around((action) => standardPolicy.decide(action)) },
    approvals: {
      redeem: mortal.around((tokens, request) => options.approvals!.redeem(tokens, request)),
    },
  }
}

const immortal = new Mortal(Number.POSITIVE_INFINITY)

/** Runs until the crash, then in a second process, and tells what is true outside. */
async function crashAt(point: number, hasProbe: boolean, isFailing: boolean) {
  const made = await kit({}, 1)
  const outside = { applied: 0, undone: 0 }
  const mortal = new Mortal(point)
  const body =
    ({ high }: ReturnType<typeof world>) =>
    async (run: Run): Promise<number> => {
      await run.call(high, { n: 1 })
      if (isFailing) throw new Error('later steps fail')
      return 1
    }
  const before = world(outside, mortal, hasProbe)
  const request_id = '0190aaaa-0000-7000-8000-000000000001'
  const running = governor(mortalOptions(made, mortal)).run(
    before.task,
    { ...init, request_id, approve: mortal.around(made.yes) },
    body(before),
  )
  const ended = await Promise.race([running, mortal.died])
  if (ended) return { ended, outside, made, isOver: true }

  const after = world(outside, immortal, hasProbe)
  const second = governor({ ...made.options, tasks: [after.task] })
  await second.recover()
  const state = await second.state(request_id)
  let result: Result<number> | undefined
  if (state) {
    result = await second.resume(request_id, after.task, body(after), { approve: made.yes })
  }
  return { ended: result, outside, made, isOver: false, state: await second.state(request_id) }
}

test.each([
  [true, false],
  [true, true],
  [false, false],
  [false, true],
])(
  'UAICP-34 a crash at every await of a high-risk call (probe %s, failing %s): one effect at most, and the log knows',
  async (hasProbe, isFailing) => {
    let point = 0
    for (; ; point++) {
      const { ended, outside, isOver, state } = await crashAt(point, hasProbe, isFailing)
      const where = `crash at point ${point}: ${JSON.stringify(ended)}`
      if (isOver) {
        expect(ended?.state, where).toBe(isFailing ? 'fail_safe' : 'deliver')
        break
      }
      // Never twice at a time, and with a probe never again after it was there.
      expect(outside.applied - outside.undone, where).toBeLessThanOrEqual(1)
      expect(outside.applied, where).toBeLessThanOrEqual(1)
      if (!ended) {
        expect(outside, where).toEqual({ applied: 0, undone: 0 })
        continue
      }
      expect(ended.outcome, where).not.toBe('pending')
      const call = [...(state?.calls.values() ?? [])].find(({ tool }) => tool === 'high')
      if (ended.state === 'deliver') {
        expect(outside, where).toEqual({ applied: 1, undone: 0 })
        expect(call?.effect, where).toBe('applied')
      } else if (ended.state === 'fail_safe') {
        const statuses = ended.undo.map(({ status }) => status)
        // What the result says of the write is what happened.
        if (call?.effect === 'absent' || !call) expect(outside.applied, where).toBe(0)
        if (hasProbe) {
          expect(outside.applied, where).toBe(outside.undone)
          expect(
            statuses.every((status) => status === 'done'),
            where,
          ).toBe(true)
        } else if (outside.applied > 0) {
          expect(statuses, where).toHaveLength(1)
          // Nothing runs for a write that nobody knows of; `unknown` is only a rollback that was cut off.
          expect(['done', 'unknown', 'in_doubt'], where).toContain(statuses[0])
          expect(outside.undone, where).toBeLessThanOrEqual(statuses[0] === 'in_doubt' ? 0 : 1)
          if (statuses[0] === 'done') expect(outside.undone, where).toBe(1)
        }
      }
    }
    // Fewer points than this would mean that some port was not crashed at.
    expect(point).toBeGreaterThan(40)
  },
)
