import { type ServerConnection, withConnection } from '../connect/connect.ts'
import {
  type Command,
  CommandError,
  defineCommand,
  ExitCode,
  SERVER_OPTIONS,
  usageError,
} from '../terminal/command.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

/** `skein api` */
export const api: Command = defineCommand({
  operands: [
    { name: 'method', description: `${METHODS.join(', ')}.` },
    {
      name: 'path',
      description: 'Path of the operation, e.g. /threads; the API page of Studio lists them.',
      // The path is optional here and checked below, where the error can say what to type.
      isOptional: true,
    },
  ],
  options: {
    data: {
      type: 'string',
      value: 'json',
      description: 'Body of the request; `-` reads it from standard input.',
    },
    ...SERVER_OPTIONS,
  },
  examples: [
    'skein api GET /threads',
    `skein api POST /threads --data '{"agent":"support","message":"Hello"}'`,
  ],
  async run({ values, operands: [word = '', path = ''], output }) {
    const method = METHODS.find((known) => known === word.toUpperCase())
    if (!method)
      throw usageError(
        `"${word}" is not one of ${METHODS.join(', ')}.`,
        word.startsWith('/') ? `Name the method first: skein api GET ${word}` : undefined,
      )
    if (path === '') throw usageError('<path> is missing.', `E.g.: skein api ${method} /threads`)
    if (!path.startsWith('/'))
      throw usageError(
        `The path "${path}" does not begin with a slash.`,
        `Write it with a slash: skein api ${method} /${path}`,
      )
    const { text: readAll } = await import('node:stream/consumers')
    const body = values.data === '-' ? await readAll(process.stdin) : values.data
    const work = async ({ send, url = 'this process' }: ServerConnection): Promise<ExitCode> => {
      const headers = body === undefined ? undefined : { 'content-type': 'application/json' }
      const signal = output.closed
      const response = await send(path, { method, body, headers, signal }).catch(
        (cause: unknown) => {
          if (signal.aborted) return undefined
          throw new CommandError(`${url} could not be reached.`, { code: 'NOT_REACHED', cause })
        },
      )
      if (!response) return ExitCode.Done
      const decoder = new TextDecoder()
      let last = ''
      for await (const chunk of response.body ?? []) {
        last = decoder.decode(chunk, { stream: true })
        output.data(last)
      }
      if (last !== '' && !last.endsWith('\n')) output.data('\n')
      if (response.ok) return ExitCode.Done
      output.say(`${method} ${path}: ${response.status}`)
      return ExitCode.Failed
    }
    return withConnection(values, output, work, { creates: method !== 'GET' })
  },
})
