import { acceptedByDeployment } from '../catalog/accepted/openai.ts'
import { openaiEmbeddings } from '../embeddings/openai.ts'
import { openaiImages } from '../images/openai.ts'
import { openaiParameters } from '../wires/openai-chat/settings.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions, chooseApi, responses } from './openai-family.ts'
import type { TwoApis, OpenAIChatParams, ResponsesParams } from './openai.ts'

const chat = chatCompletions({
  toolCallId: { pattern: /^[^]+$/, maxLength: 40 },
  audioFormats: ['wav', 'mp3'],
  parameters: openaiParameters,
  accepts: acceptedByDeployment,
})
const name = 'azure-openai'

/**
 * Azure OpenAI of one resource, through its v1 API; the model id is the name of a deployment.
 * Pass `{ api: 'chat' }` after the model id to use Chat Completions instead of Responses.
 *
 *     const azure = azureOpenaiResource('my-resource')
 *     llm({ model: azure('my-deployment') })
 *
 * For Entra ID put the token in `config.headers.authorization`.
 *
 * The address is that of the v1 API (learn.microsoft.com/azure/foundry/openai/api-version-lifecycle, read in
 * November 2026); bodies are those of `openai 7.55.0`, which Microsoft names as the client for it.
 */
export function azureOpenaiResource(
  resource: string,
): TwoApis<OpenAIChatParams, ResponsesParams, 'responses'> {
  return at(`https://${encodeURIComponent(resource)}.openai.azure.com/openai/v1`)
}

function at(baseUrl: string): TwoApis<OpenAIChatParams, ResponsesParams, 'responses'> {
  return defineVendor({
    name,
    baseUrl,
    keyVariables: ['AZURE_OPENAI_API_KEY', 'AZURE_API_KEY'],
    authHeaders: (key) => ({ 'api-key': key }),
    llm: chooseApi(
      name,
      { chat, responses: responses({ accepts: acceptedByDeployment }) },
      'responses',
    ),
    embedding: openaiEmbeddings(),
    image: openaiImages(),
  })
}

/**
 * Azure OpenAI with the resource in `config.baseUrl`, e.g.
 * `https://my-resource.openai.azure.com/openai/v1`. The default host ends in `.invalid`, which never
 * resolves, so that the network error names the missing setting.
 */
export const azureOpenai: TwoApis<OpenAIChatParams, ResponsesParams, 'responses'> = at(
  'https://config-base-url-is-not-set.invalid/openai/v1',
)

export default azureOpenai
