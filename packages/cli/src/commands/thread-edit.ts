import { createInterface } from 'node:readline/promises'
import { findThreadByPrefix } from '../connect/short-ids.ts'
import { withConnection } from '../connect/connect.ts'
import {
  type Command,
  defineCommand,
  ExitCode,
  JSON_OPTION,
  SERVER_OPTIONS,
  THREAD_OPERAND,
  usageError,
} from '../terminal/command.ts'
import { lineText } from '../terminal/table.ts'

/** `skein thread rename` */
export const threadRename: Command = defineCommand({
  operands: [THREAD_OPERAND, { name: 'title', description: 'The new title, in quotes.' }],
  options: { ...JSON_OPTION, ...SERVER_OPTIONS },
  examples: [
    'skein thread rename 7f3a "Refund of the lamp"',
    'skein thread rename 7f3a Lamp --json',
  ],
  async run({ values, operands: [text = '', title = ''], output }) {
    if (title.trim() === '') throw usageError('A thread cannot have an empty title.', 'Give one.')
    return withConnection(values, output, async ({ client }) => {
      const { id } = await findThreadByPrefix(client, text)
      const thread = await client.threads.update(id, { title: title.trim() })
      if (values.json) output.json(thread)
      else output.say(`${id} is called ${lineText(thread.title ?? '')}.`)
      return ExitCode.Done
    })
  },
})

/** `skein thread delete` */
export const threadDelete: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: {
    yes: {
      type: 'boolean',
      short: 'y',
      description: 'Deletes without asking; required where there is no terminal.',
    },
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: [
    'skein thread delete 7f3a',
    "skein thread list --agent support --json | jq -r '.threads[].id' | xargs -n1 skein thread delete --yes",
  ],
  async run({ values, operands: [text = ''], output }) {
    return withConnection(values, output, async ({ client }) => {
      const { id, title, firstWords, lifecycle } = await findThreadByPrefix(client, text)
      const name = `${id} (${lineText(title ?? firstWords ?? 'no message yet')}, ${lifecycle})`
      if (values.yes !== true) {
        if (process.stdin.isTTY !== true)
          throw usageError(
            `${name} was not deleted: without a terminal there is no one to ask.`,
            'Give --yes.',
          )
        output.say(`Delete ${name} with all threads below it? This cannot be undone.`)
        const lines = createInterface({ input: process.stdin, output: process.stderr })
        const question = output.prompt('Type yes to delete, Enter: not now > ')
        const answer = await lines.question(question).catch(() => '')
        lines.close()
        if (answer.trim().toLowerCase() !== 'yes') {
          output.say('Nothing was deleted.')
          return ExitCode.Failed
        }
      }
      await client.threads.remove(id)
      if (values.json) output.json({ deleted: id })
      else output.say(`Deleted ${name}.`)
      return ExitCode.Done
    })
  },
})

/** `skein thread stop` */
export const threadStop: Command = defineCommand({
  operands: [THREAD_OPERAND],
  options: {
    'after-step': { type: 'boolean', description: 'Lets the running step finish first.' },
    ...JSON_OPTION,
    ...SERVER_OPTIONS,
  },
  examples: ['skein thread stop 7f3a', 'skein thread stop 7f3a --after-step'],
  async run({ values, operands: [text = ''], output }) {
    return withConnection(values, output, async ({ client }) => {
      const { id } = await findThreadByPrefix(client, text)
      await client.threads.stop(id, { afterStep: values['after-step'] === true })
      if (values.json) output.json(await client.threads.get(id))
      else output.say(`Stopping ${id}. Continue with: skein thread resume ${id}`)
      return ExitCode.Done
    })
  },
})
