import type { Message } from '@skein/ai'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { chooseCut, estimateTokens, summaryRequest } from '../services/compaction.ts'
import type { DrainContext } from './drain-context.ts'
import { messageOf } from './message-of.ts'
import { spentOn } from './usage.ts'
import { sideModel } from './side-model.ts'
import { viewOf } from './view.ts'

/** Replaces the older part of a long view by a summary. The log keeps everything. */
export async function compactIfLong(context: DrainContext, side: ResolvedSide): Promise<void> {
  const limit = limitOf(side)
  if (limit === undefined) return
  const view = viewOf(context.state, side.side, side.prompt)
  if (estimateTokens(view) <= limit) return
  const { keepMessages = 20 } = side.prompt.definition.compaction ?? {}
  const cut = chooseCut(view, { keepMessages })
  const upTo = cut === undefined ? undefined : lastStored(context, view.slice(0, cut))
  if (cut === undefined || upTo === undefined) return
  try {
    await summarise(context, side, { older: view.slice(0, cut), upTo })
  } catch (error) {
    if (context.signal.aborted) return
    // Going on with a long request may still work; a summary that failed must not stop the thread.
    const message = `The conversation could not be summarised: ${messageOf(error)}`
    const raised = {
      type: 'error_raised',
      at: context.at(),
      code: 'COMPACTION_FAILED',
      message,
    } as const
    await context.commit('compaction_failed', { events: [raised] })
  }
}

function limitOf({ prompt }: ResolvedSide): number | undefined {
  const { enabled = true, maxTokens } = prompt.definition.compaction ?? {}
  if (!enabled) return undefined
  if (maxTokens !== undefined) return maxTokens
  const context = prompt.models[0]?.definition?.capabilities?.maxContextTokens
  return context === undefined ? undefined : Math.floor(context * 0.8)
}

/** The last message of the older part that stands in the log under its own id. */
function lastStored({ state }: DrainContext, older: readonly Message[]): string | undefined {
  for (let place = older.length - 1; place >= 0; place--) {
    const id = older[place]!.id.replace(/\.results$/, '')
    if (state.places.has(id)) return id
  }
  return undefined
}

async function summarise(
  context: DrainContext,
  side: ResolvedSide,
  { older, upTo }: { readonly older: readonly Message[]; readonly upTo: string },
): Promise<void> {
  const turn = await sideModel(context, side).generate(summaryRequest(older))
  const at = context.at()
  const events = [
    { type: 'context_compacted', at, side: side.side, upTo, summary: turn.response.text },
    spentOn(side.prompt.models[0]!, turn.usage, at),
  ] as const
  await context.commit('compact', { events, isProgress: true })
}
