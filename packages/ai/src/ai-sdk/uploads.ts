import type { UserContent } from '../contract/content.ts'
import type { UPPError } from '../contract/error.ts'
import { vendorFileOf } from '../media/vendor-file.ts'
import { refuseForeign } from '../wires/media.ts'
import { requestError } from '../wires/wire-error.ts'
import type { AiSdkModel } from './types.ts'

/** This package's names of the vendors that the AI SDK names otherwise. */
const ownNames: Readonly<Record<string, string>> = { azure: 'azure-openai', moonshotai: 'moonshot' }

/** Returns the AI SDK's key of a model's vendor: `openai` for a provider named `openai.responses`. */
export function vendorKey({ provider }: Pick<AiSdkModel, 'provider'>): string {
  return provider.split('.')[0]!
}

/** Returns why a block with an uploaded file cannot be sent to a model; undefined for any other block. */
export function refuseUpload(block: UserContent, model: AiSdkModel): UPPError | undefined {
  if (block.type !== 'image' && block.type !== 'document') return undefined
  const { source } = block
  if (source.type !== 'url' || !vendorFileOf(source.url)) return undefined
  const key = vendorKey(model)
  const foreign = refuseForeign(block, ownNames[key] ?? key)
  if (foreign || model.specificationVersion !== 'v3') return foreign
  const message = `${model.provider} has the specification version v3, which has no uploaded files.`
  return requestError(model.provider, message, 'Send the data of the file.')
}

/** Writes an uploaded file as the AI SDK's reference to it. */
export function toReference(
  { fileId }: { readonly fileId: string },
  model: Pick<AiSdkModel, 'provider'>,
): Readonly<Record<string, string>> {
  const key = vendorKey(model)
  const isName = key === 'google' && !/^\w+:/.test(fileId)
  return { [key]: isName ? `https://generativelanguage.googleapis.com/v1beta/${fileId}` : fileId }
}

/** Reads a reference of the AI SDK, which may have the ids of several vendors: that of the model's, or else the first. */
export function fromReference(
  reference: Readonly<Record<string, string>>,
  { provider }: { readonly provider: string },
): { readonly provider: string; readonly fileId: string } | undefined {
  const files = Object.entries(reference).map(([key, fileId]) => ({
    provider: ownNames[key] ?? key,
    fileId,
  }))
  return files.find((file) => file.provider === provider) ?? files[0]
}
