/**
 * Models of Amazon Bedrock and Vertex AI, and a fallback that keeps requests in the European Union. A vendor server plays
 * both clouds, so no account is needed.
 *
 * Prints:
 *
 *     bedrock, signed: Hello from Frankfurt.
 *     vertex: Hello from Eemshaven.
 *     in the Union: bedrock-runtime.eu-central-1.amazonaws.com
 *     nothing inside: RESIDENCY
 */
import { isUPPError } from '@skein/ai'
import { says, vendorServer } from '@skein/ai/testing'

const server = vendorServer([
  says('Hello from Frankfurt.'),
  says('Hello from Eemshaven.'),
  says('Hello from Frankfurt again.'),
])
const config = { fetch: server.fetch }
const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'from your vault' }

// #region bedrock
import { llm } from '@skein/ai'
import { bedrockWith } from '@skein/ai/bedrock'

// Without credentials, `bedrock` finds them in the environment, as the SDKs of AWS do.
const bedrock = bedrockWith({ credentials })
const claude = bedrock('eu.anthropic.claude-sonnet-4-5-20250929-v1:0', { region: 'eu-central-1' })
const first = await llm({ model: claude, config }).generate('Hello!')
// #endregion bedrock
const { authorization = '' } = server.requests[0]!.headers
console.log(`bedrock, ${authorization.startsWith('AWS4-HMAC') ? 'signed' : 'open'}: ${first.text}`)

// #region vertex
import { vertexWith } from '@skein/ai/vertex'

// Without `token` or `credentials`, `vertex` finds them as the libraries of Google do.
const vertex = vertexWith({
  project: 'my-project',
  location: 'europe-west4',
  token: async () => ({ token: 'from your vault', expiresAt: Date.now() + 3_600_000 }),
})
const second = await llm({ model: vertex('gemini-2.5-pro'), config }).generate('Hello!')
// #endregion vertex
console.log(`vertex: ${second.text}`)

// #region residency
import { fallback } from '@skein/ai/routing'

const american = bedrock('anthropic.claude-sonnet-4-5-20250929-v1:0', { region: 'us-east-1' })
const european = fallback([american, claude], { residency: 'eu' })
await llm({ model: european, config }).generate('Hello!')
// #endregion residency
console.log(`in the Union: ${server.requests.at(-1)!.host}`)

const nowhere = fallback([american], { residency: 'eu' })
await llm({ model: nowhere, config })
  .generate('Hello!')
  .catch((error: unknown) => {
    if (isUPPError(error)) console.log(`nothing inside: ${error.vendorCode}`)
  })
