// Owners for OpenSSL's objects. Inside http/ only.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

namespace grapnel::http {

template <auto Free>
struct OpenSslDeleter {
  template <class T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, OpenSslDeleter<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, OpenSslDeleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, OpenSslDeleter<EVP_PKEY_free>>;

}  // namespace grapnel::http
