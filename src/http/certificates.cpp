#include "http/certificates.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <boost/asio/ip/address.hpp>
#include <ctime>
#include <memory>

#include "http/openssl.h"

namespace grapnel::http {
namespace {

using Extension = std::unique_ptr<X509_EXTENSION, OpenSslDeleter<X509_EXTENSION_free>>;

Failure failure(std::string_view what) {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return fail(Reason::kSystem, "{}: {}", what, text == nullptr ? "unknown" : text);
}

Bio reader_of(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_in(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

Result<CertificateAndKey> to_pem(X509* certificate, EVP_PKEY* key) {
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failure("writing a certificate");
  }
  return CertificateAndKey{text_in(certificate_text.get()), text_in(key_text.get())};
}

bool add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

Result<std::string> alternative_names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    if (name.empty() || name.find_first_of(",\r\n") != std::string::npos) {
      return fail(Reason::kUsage, "'{}' cannot stand in a certificate", name);
    }
    boost::system::error_code not_an_address;
    boost::asio::ip::make_address(name, not_an_address);
    if (!out.empty()) out += ',';
    out += (not_an_address ? "DNS:" : "IP:") + name;
  }
  return out;
}

bool add_name(X509_NAME* name, const char* field, const std::string& value) {
  return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

bool set_validity(X509* certificate, const CertificateOptions& options) {
  const auto seconds_of = [](Time time) {
    return static_cast<std::time_t>(
        std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count());
  };
  return ASN1_TIME_set(X509_getm_notBefore(certificate), seconds_of(options.not_before)) !=
             nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), seconds_of(options.not_after)) != nullptr;
}

bool set_serial(X509* certificate) {
  unsigned char bytes[16];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] &= 0x7f;  // positive
  const std::unique_ptr<BIGNUM, OpenSslDeleter<BN_free>> number(
      BN_bin2bn(bytes, sizeof bytes, nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

// Everything but the issuer, the usage and the signature.
Result<Certificate> blank(const CertificateOptions& options, EVP_PKEY* key) {
  Certificate certificate(X509_new());
  if (!certificate || X509_set_version(certificate.get(), 2) != 1 ||
      !set_serial(certificate.get()) || !set_validity(certificate.get(), options) ||
      X509_set_pubkey(certificate.get(), key) != 1) {
    return failure("making a certificate");
  }
  X509_NAME* name = X509_get_subject_name(certificate.get());
  for (const std::string& organization : options.organizations) {
    if (!add_name(name, "O", organization)) return failure("naming a certificate's organization");
  }
  if (!add_name(name, "CN", options.common_name)) return failure("naming a certificate");
  return certificate;
}

}  // namespace

Result<CertificateAndKey> make_authority(const CertificateOptions& options) {
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return failure("making a key");
  auto made = blank(options, key.get());
  if (!made) return fail(made.error());
  X509* certificate = made->get();
  if (X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) != 1 ||
      !add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE") ||
      !add_extension(certificate, certificate, NID_key_usage,
                     "critical,digitalSignature,keyCertSign,cRLSign") ||
      !add_extension(certificate, certificate, NID_subject_key_identifier, "hash") ||
      X509_sign(certificate, key.get(), EVP_sha256()) == 0) {
    return failure("signing an authority's certificate");
  }
  return to_pem(certificate, key.get());
}

Result<CertificateAndKey> make_certificate(const CertificateAndKey& authority,
                                           const CertificateOptions& options) {
  const Bio issuer_text = reader_of(authority.certificate_pem);
  const Bio issuer_key_text = reader_of(authority.key_pem);
  const Certificate issuer(PEM_read_bio_X509(issuer_text.get(), nullptr, nullptr, nullptr));
  const Key issuer_key(PEM_read_bio_PrivateKey(issuer_key_text.get(), nullptr, nullptr, nullptr));
  if (!issuer || !issuer_key) return failure("reading the authority");
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return failure("making a key");
  const auto names = alternative_names(options.names);
  if (!names) return fail(names.error());
  auto made = blank(options, key.get());
  if (!made) return fail(made.error());
  X509* certificate = made->get();
  if (X509_set_issuer_name(certificate, X509_get_subject_name(issuer.get())) != 1 ||
      !add_extension(certificate, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(certificate, issuer.get(), NID_key_usage, "critical,digitalSignature") ||
      !add_extension(certificate, issuer.get(), NID_ext_key_usage,
                     options.for_client ? "clientAuth" : "serverAuth") ||
      !add_extension(certificate, issuer.get(), NID_subject_key_identifier, "hash") ||
      !add_extension(certificate, issuer.get(), NID_authority_key_identifier, "keyid") ||
      (!names->empty() &&
       !add_extension(certificate, issuer.get(), NID_subject_alt_name, *names)) ||
      X509_sign(certificate, issuer_key.get(), EVP_sha256()) == 0) {
    return failure("signing a certificate");
  }
  return to_pem(certificate, key.get());
}

Result<Time> certificate_expiry(std::string_view certificate_pem) {
  const Bio text = reader_of(certificate_pem);
  const Certificate certificate(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  if (!certificate) {
    ERR_clear_error();
    return fail(Reason::kDecode, "not a PEM certificate");
  }
  std::tm when{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &when) != 1) {
    return fail(Reason::kDecode, "a certificate without an end");
  }
  return Time(std::chrono::seconds(timegm(&when)));
}

Result<std::string> random_token(size_t bytes) {
  std::string raw(bytes, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(raw.data()), static_cast<int>(bytes)) != 1) {
    return failure("no random bytes");
  }
  std::string out;
  out.reserve(bytes * 2);
  for (const char c : raw) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

}  // namespace grapnel::http
