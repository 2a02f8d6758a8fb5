import type { EmbeddedRuntime, SendMessage } from '@skein/runtime'
import { chanceOf } from './chance.ts'
import type { Coverage } from './coverage.ts'
import type { Supervisor } from './supervisor.ts'
import type { World } from './world.ts'

/** What befalls a call from outside. Time limits are those of the slow calls themselves. */
export const STRIKES = [
  'stop',
  'stop after the step',
  'terminate',
  'cut',
  'restart',
  'crash',
  'shutdown',
] as const

/**
 * Where in the life of a call or an effect it may happen, and how likely: after these commits, and around the effect
 * itself.
 */
export const MOMENTS: ReadonlyMap<string, number> = new Map([
  ['answer', 0.03],
  ['call_waits', 0.2],
  ['call_start', 0.05],
  ['before its effect', 0.2],
  ['after its effect', 0.3],
  ['call_end', 0.05],
  ['effect_start', 0.4],
  ['in_doubt', 0.4],
])

/**
 * Stops, cuts and terminates threads at every point of a call, or its root or its parent, and lets processes end
 * there. What is decided has its own chance, so runs without strikes stay what they are.
 */
export function strike(
  world: World,
  {
    supervisor,
    coverage,
    act,
    policies,
  }: {
    readonly supervisor: Supervisor
    readonly coverage: Coverage
    /** Does something as people do. */
    readonly act: (what: string, work: (runtime: EmbeddedRuntime) => Promise<unknown>) => void
    readonly policies: Map<string, SendMessage['ifBusy']>
  },
): void {
  const chance = chanceOf(world.seed ^ 0x57_121f)
  let left = world.plan.strikes
  let count = 0
  world.reach = (moment, threadId, lane) => {
    const likely = MOMENTS.get(moment)
    if (left === 0 || likely === undefined || !chance.happens(likely)) return
    left--
    const kind = chance.pick(STRIKES)
    coverage.strike(kind, moment)
    const where = chance.pick(['self', 'self', 'self', 'root', 'parent'] as const)
    const messageId = `strike-${++count}`
    if (kind === 'crash') return void supervisor.strike(lane)
    if (kind === 'shutdown') return void supervisor.retireGently(lane)
    if (kind === 'cut' || kind === 'restart') policies.set(messageId, kind)
    act(kind, async ({ threads }) => {
      const id = await target(world, threadId, where)
      switch (kind) {
        case 'stop':
          return threads.stop(id)
        case 'stop after the step':
          return threads.stop(id, { afterStep: true })
        case 'terminate':
          return threads.terminate(id)
        default:
          return threads.send(id, { text: 'another thing', messageId, ifBusy: kind })
      }
    })
  }
}

async function target(
  { stored: { store } }: World,
  threadId: string,
  where: 'self' | 'root' | 'parent',
): Promise<string> {
  const head = await store.head(threadId)
  if (where === 'root') return head?.rootId ?? threadId
  return (where === 'parent' ? head?.parentId : undefined) ?? threadId
}
