// Prepares images for a prompt: formats and sizes that every model takes.

// What models take.
export const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

// Longest edge in pixels. Vendors scale larger images down themselves.
const EDGE_PX = 2_000;

// Size up to which a picture is sent as it is. With base64 it fits into a response of the daemon, which has 4 MiB.
export const KEPT_BYTES = 1_500_000;

// Larger files are not decoded, because a phone may run out of memory.
const DECODED_BYTES = 50_000_000;

const QUALITY = 0.85;

/** The image cannot be sent; the message is a sentence. */
export class ImageError extends Error {}

/**
 * Resolves to {mime_type, data} with base64. Photos are always written again, which removes the place where they were
 * taken. Rejects with `ImageError`.
 */
export async function prepared(file) {
  const name = file.name || "The image";
  if (file.size > DECODED_BYTES) throw new ImageError(`${name} is too large: choose one of less than 50 MB.`);
  const bitmap = await decoded(file, name);
  try {
    const isSmall = file.size <= KEPT_BYTES && Math.max(bitmap.width, bitmap.height) <= EDGE_PX;
    const isKept = isSmall && TYPES.includes(file.type) && file.type !== "image/jpeg";
    const made = isKept ? file : await jpeg(bitmap);
    if (made === null || made.size > KEPT_BYTES * 2) throw new ImageError(`${name} is too large to be sent.`);
    return { mime_type: made.type, data: await base64(made) };
  } finally {
    bitmap.close();
  }
}

/** The width and height of an image that is scaled down until it is at most `edge` long. */
export function fitted(width, height, edge = EDGE_PX) {
  const scale = Math.min(1, edge / Math.max(width, height));
  return [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
}

async function decoded(file, name) {
  try {
    return await createImageBitmap(file);
  } catch {
    throw new ImageError(`${name} is not an image that this browser can read.`);
  }
}

function jpeg(bitmap) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = fitted(bitmap.width, bitmap.height);
  const context = canvas.getContext("2d");
  context.fillStyle = "white"; // JPEG has no transparency
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", QUALITY));
}

function base64(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new ImageError("The image cannot be read."));
    reader.readAsDataURL(blob);
  });
}
