import type { ThreadHead } from '@skein/runtime'
import type { Client } from '@skein/runtime/client'
import type { ExitCode } from '../exit-code.ts'
import type { Output } from '../output.ts'
import { parseDuration } from './duration.ts'
import { follow, type Followed } from './follow.ts'
import { report } from './report.ts'
import { createView, type ViewOptions } from './run-view.ts'

export interface ShowOptions extends ViewOptions {
  readonly timeoutMs?: number | undefined
  /** The thread as it was before; absent shows all of it. */
  readonly before?: ThreadHead | undefined
  /** Position of a turn that was followed before. */
  readonly after?: string | undefined
}

/** Shows what a thread does until it is at rest, then what came of it. */
export async function showRun(
  client: Client,
  thread: Pick<ThreadHead, 'id' | 'agent'>,
  output: Output,
  options: ShowOptions,
): Promise<{ readonly code: ExitCode; readonly followed: Followed | undefined }> {
  const { before, after, timeoutMs } = options
  const isDialogue = await isBetweenModels(client, thread.agent)
  const view = createView(output, { ...options, isDialogue })
  const followed = await follow({
    client,
    threadId: thread.id,
    view,
    output,
    timeoutMs,
    ...(before && { after: String(before.seq), sinceMs: before.updatedAt }),
    ...(after !== undefined && { after }),
  })
  if (followed) view.end(followed.result)
  return { code: report(followed, output), followed }
}

/** Read before anything is done, because it may be wrong. */
export function timeoutOf({
  timeout,
}: {
  readonly timeout?: string | undefined
}): number | undefined {
  return timeout === undefined ? undefined : parseDuration('--timeout', timeout)
}

async function isBetweenModels(client: Client, agent: string): Promise<boolean> {
  const agents = await client.agents.list()
  return agents.some(({ name, type }) => name === agent && type === 'dual_ai')
}
