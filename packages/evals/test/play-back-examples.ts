import { registerHooks } from 'node:module'
import type { EmbeddedRuntime, RuntimeOptions } from '@skein/runtime'

/*
 * Loaded before an example (`--import`): every runtime that the example makes has its threads played back when it
 * stops. Prints one line of JSON for each thread to standard error.
 */

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context)
    if (!url.endsWith('/packages/runtime/src/runtime.ts') || loaded.source == null) return loaded
    const source = String(loaded.source).replace(
      /export async function createRuntime\(/,
      `export async function createRuntime(options) {
  const made = await createOwnRuntime(options)
  return globalThis.skeinRecord?.(made, options) ?? made
}
async function createOwnRuntime(`,
    )
    return { ...loaded, source }
  },
})

const played = new Set<string>()
Object.assign(globalThis, {
  skeinRecord(runtime: EmbeddedRuntime, options: RuntimeOptions): EmbeddedRuntime | undefined {
    if (options.owner === 'player') return undefined
    const stop = runtime.stop.bind(runtime)
    runtime.stop = async (...rest) => {
      await playAll(runtime, options)
      await stop(...rest)
    }
    return runtime
  },
})

async function playAll(runtime: EmbeddedRuntime, options: RuntimeOptions): Promise<void> {
  const { playBack, readRecording } = await import('@skein/evals')
  const { policy, limits, env, keys, secretKey, id, governorLimits } = options
  const own = { policy, limits, env, keys, secretKey, id, governorLimits }
  const given = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined))
  for (const head of await runtime.store.list({ parentId: null, limit: 20 })) {
    if (played.has(head.id) || head.lifecycle === 'erased') continue
    played.add(head.id)
    const recorded = await readRecording(runtime.store, head.id)
    const report = await playBack(recorded, { registry: runtime.registry, runtime: given })
    const { isSame, events, difference } = report
    const line = { agent: head.agent, isSame, events, message: difference?.message }
    process.stderr.write(`played ${JSON.stringify(line)}\n`)
  }
}
