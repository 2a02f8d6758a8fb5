import { parameters, prompt, toolNames, type RunAgent } from './runner.ts'

interface Call {
  readonly id: string
  readonly function: { readonly name: string; readonly arguments: string }
}

interface Answer {
  readonly choices: readonly [
    { readonly message: { readonly content: string; readonly tool_calls?: readonly Call[] } },
  ]
}

/** What one writes by hand: `fetch`, `JSON.parse`, a loop. */
export async function rawRunner(baseUrl: string): Promise<RunAgent> {
  return async ({ model, toolCount, lookUp }) => {
    const tools = toolNames(toolCount).map((name) => ({
      type: 'function',
      function: { name, description: 'Looks up.', parameters },
    }))
    const run = async ({ id, function: called }: Call): Promise<object> => {
      const { id: wanted } = JSON.parse(called.arguments) as { id: number }
      return { role: 'tool', tool_call_id: id, content: JSON.stringify(await lookUp(wanted)) }
    }
    const messages: object[] = [{ role: 'user', content: prompt }]
    for (;;) {
      const response = await fetch(`${baseUrl}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: 'Bearer sk-test' },
        body: JSON.stringify({ model, messages, tools }),
      })
      const { message } = ((await response.json()) as Answer).choices[0]
      messages.push(message)
      if (!message.tool_calls) return message.content
      messages.push(...(await Promise.all(message.tool_calls.map(run))))
    }
  }
}
