import type { WaitingItem } from '@skein/runtime'
import type { Client } from '@skein/runtime/client'
import type { Operand, Switch } from './command.ts'
import { withConnection, type Target } from './connect/connect.ts'
import { ExitCode } from './exit-code.ts'
import { findWaiting } from './find-waiting.ts'
import { showRun } from './follow/show-run.ts'
import type { Output } from './output.ts'

export const DECISION_OPERANDS: readonly Operand[] = [
  { name: 'thread', description: 'Its id, or the beginning or end of it.' },
  {
    name: 'interrupt',
    description: 'What waits there; not needed when it is the only one.',
    isOptional: true,
  },
]

export const FOLLOW_OPTION: { readonly follow: Switch } = {
  follow: { type: 'boolean', description: 'Shows what comes of it.' },
}

interface Decision {
  readonly verb: 'approve' | 'deny'
  readonly decide: (client: Client, item: WaitingItem) => Promise<void>
}

interface Given {
  readonly values: Target & { readonly json?: boolean; readonly follow?: boolean }
  readonly operands: readonly string[]
  readonly output: Output
}

/** Finds what is meant, decides it, and shows what comes of it where asked, or where no server would. */
export function decideOne(given: Given, { verb, decide }: Decision): Promise<ExitCode> {
  const { values, operands, output } = given
  return withConnection(
    values,
    output,
    async ({ client, url }) => {
      const item = await findWaiting(client, operands[0] ?? '', operands[1])
      const { threadId, interruptId, rootId } = item
      const before = await client.threads.get(rootId)
      await decide(client, item)
      output.say(`${verb === 'approve' ? 'approved' : 'denied'}: ${callOf(item)}`)
      if (values.follow || url === undefined)
        return (await showRun(client, before, output, { ...values, before })).code
      if (values.json) output.json({ threadId, interruptId, type: verb })
      return ExitCode.Done
    },
    { works: true },
  )
}

function callOf({ toolName, arguments: args }: WaitingItem): string {
  return `${toolName} ${JSON.stringify(args)}`
}
