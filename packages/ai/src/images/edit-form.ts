import { decodeLooseBase64 } from '../loose-base64.ts'
import type { ImageBlock } from '../content.ts'
import { ErrorCode, UPPError } from '../error.ts'
import type { ImageRequest } from '../image.ts'
import { imageSource } from '../wires/media.ts'

/** The multipart body of an edit: images, mask, prompt and every parameter as its own field. */
export function editForm(provider: string, modelId: string, request: ImageRequest): FormData {
  const { images = [], mask, prompt, params } = request
  const form = new FormData()
  form.append('model', modelId)
  form.append('prompt', prompt)
  // One image keeps the old field name, which every model knows.
  const field = images.length > 1 ? 'image[]' : 'image'
  images.forEach((image, index) => appendImage(form, field, `image-${index + 1}`, image, provider))
  if (mask) appendImage(form, 'mask', 'mask', mask, provider)
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined) continue
    form.set(name, typeof value === 'string' ? value : JSON.stringify(value))
  }
  return form
}

function appendImage(
  form: FormData,
  field: string,
  name: string,
  image: ImageBlock,
  provider: string,
): void {
  const { base64, mimeType } = imageSource(image)
  if (base64 === undefined) {
    throw new UPPError(`${provider} takes images to edit as data, not by address.`, {
      code: ErrorCode.InvalidRequest,
      provider,
      modality: 'image',
      hint: 'Download it first and use Image.fromBytes.',
    })
  }
  const blob = new Blob([decodeLooseBase64(base64)], { type: mimeType })
  form.append(field, blob, `${name}.${mimeType.replace(/^image\/|\+.*$/g, '')}`)
}
