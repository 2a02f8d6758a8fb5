import { type ReactNode, useMemo, useState } from 'react'
import type { ViewMessage } from '@skein/runtime/view'
import { Dialog } from '../../parts/dialog.tsx'
import { ErrorBox } from '../../parts/error-box.tsx'
import { line, plural } from '../../parts/format.ts'
import { useAddress } from '../../state/address.ts'
import { useResource } from '../../state/resource.ts'
import { useStudio } from '../../state/studio.ts'
import type { LoggedEvent, ShownThread } from '../../state/tree.ts'

/** Creates a branch (copy) of the thread at a message: with a changed text, with a new answer, or without changes. */
export function ForkDialog({
  thread,
  message,
  onClose,
}: {
  readonly thread: ShownThread
  readonly message: ViewMessage
  readonly onClose: () => void
}): ReactNode {
  const { client, notify, lists } = useStudio()
  const [, go] = useAddress()
  const [text, setText] = useState(message.text)
  const [error, setError] = useState<unknown>()
  const [isMaking, setMaking] = useState(false)
  const again = useMemo(() => workAfter(thread.events, message.id), [thread.events, message.id])
  const isPerson = message.from === 'user'
  const make = async (options: Parameters<typeof client.threads.fork>[1]): Promise<void> => {
    setMaking(true)
    try {
      const fork = await client.threads.fork(thread.threadId, options)
      lists.refresh()
      notify('This is the new branch. The thread it came from stays as it is.')
      onClose()
      go({ screen: 'thread', threadId: fork.id })
    } catch (failure) {
      setMaking(false)
      setError(failure)
    }
  }
  const work = workText(again)
  return (
    <Dialog title={isPerson ? 'Fork with this message' : 'Fork at this answer'} onClose={onClose}>
      {isPerson && (
        <label className="stack">
          <span className="soft">The message in the new branch</span>
          <textarea
            className="field"
            rows={5}
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </label>
      )}
      <p>
        The thread stays as it is. The branch has everything before this{' '}
        {isPerson ? 'message' : 'answer'}; calls and children of that history are records and do not
        run again.
      </p>
      <p data-testid="runs-again">
        {work === ''
          ? 'Nothing has followed this message yet.'
          : `What followed here runs again: ${work}.`}
      </p>
      <Effects thread={thread} names={[...again.calls.keys()]} />
      {error !== undefined && <ErrorBox error={error} />}
      <div className="btns">
        {isPerson ? (
          <button
            type="button"
            className="btn primary"
            disabled={isMaking || text.trim() === ''}
            onClick={() => void make({ before: message.id, message: text })}
          >
            Fork and run
          </button>
        ) : (
          <>
            <button
              type="button"
              className="btn primary"
              disabled={isMaking}
              onClick={() => void make({ before: message.id, isContinued: true })}
            >
              Fork and answer again
            </button>
            <button
              type="button"
              className="btn"
              disabled={isMaking}
              title="Nothing runs until you write."
              onClick={() => void make({ upTo: message.id })}
            >
              Fork after this answer
            </button>
          </>
        )}
        <button type="button" className="btn quiet" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  )
}

/** Warns which of the tools that ran change something outside of the thread. */
function Effects({
  thread,
  names,
}: {
  readonly thread: ShownThread
  readonly names: readonly string[]
}): ReactNode {
  const { client } = useStudio()
  const { agent } = thread.view
  const detail = useResource(names.length > 0 ? `agent ${agent}` : undefined, () =>
    client.agents.get(agent),
  )
  if (names.length === 0 || detail.isLoading) return null
  const tools = detail.value?.sides.flatMap((side) => side.tools) ?? []
  const writes = names.filter((name) => {
    const risk = tools.find((tool) => tool.name === name)?.risk
    return risk !== undefined && risk !== 'read_only'
  })
  if (writes.length === 0) return null
  return (
    <p className="waits">
      {writes.map((name) => line(name, 60)).join(', ')} {writes.length === 1 ? 'changes' : 'change'}{' '}
      something outside; if the branch calls {writes.length === 1 ? 'it' : 'them'} again, it happens
      twice.
    </p>
  )
}

interface Work {
  readonly modelCalls: number
  readonly children: number
  readonly calls: ReadonlyMap<string, number>
}

/** Counts what a thread did after a message, in the same way as the server when it creates the fork. */
function workAfter(events: readonly LoggedEvent[], messageId: string): Work {
  const start = events.findIndex(
    ({ event }) => event.type === 'message_added' && event.message.id === messageId,
  )
  const message = events[start]?.event
  // To get a new answer, the model is asked again, but its first request is logged before the message, so it is added.
  const isAnswer = message?.type === 'message_added' && message.message.type === 'assistant'
  const calls = new Map<string, number>()
  let [modelCalls, children] = [isAnswer ? 1 : 0, 0]
  for (const { event } of start < 0 ? [] : events.slice(start)) {
    if (event.type === 'model_requested') modelCalls++
    else if (event.type === 'subagent_created') children++
    else if (event.type === 'tool_execution_start')
      calls.set(event.toolName, (calls.get(event.toolName) ?? 0) + 1)
  }
  return { modelCalls, children, calls }
}

function workText({ modelCalls, children, calls }: Work): string {
  const parts = Array.from(calls, ([name, count]) => `${count} × ${line(name, 60)}`)
  return [
    ...(modelCalls > 0 ? [plural(modelCalls, 'model call')] : []),
    ...parts,
    ...(children > 0 ? [plural(children, 'child', 'children')] : []),
  ].join(', ')
}
